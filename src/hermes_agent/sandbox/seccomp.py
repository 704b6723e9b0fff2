"""What a thread and its children may ask of the kernel: a seccomp filter, no capabilities.

The filter closes what file rules cannot: Unix sockets (docker.sock, ssh-agent, D-Bus), reading
another process's memory, kernel keyrings, pushing characters into a terminal, and io_uring,
which would bypass the filter itself.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final, NamedTuple

AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_PACKET: Final = 17
AF_VSOCK: Final = 40
TERMINAL_INPUT_REQUESTS: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_ALLOW: Final = 0x7FFF0000
_DENY: Final = 0x00050000 | 13  # SECCOMP_RET_ERRNO with EACCES
_NUMBER_OFFSET: Final = 0
_ARCHITECTURE_OFFSET: Final = 4
_ARGUMENT_OFFSET: Final = 16
_X32_BIT: Final = 0x40000000

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2


class _Architecture(NamedTuple):
    """The audit number of a machine and the numbers of its system calls."""

    audit: int
    socket: int
    ioctl: int
    denied: tuple[int, ...]


# ptrace, process_vm_readv, process_vm_writev, add_key, request_key, keyctl, bpf,
# perf_event_open, userfaultfd, io_uring_setup, io_uring_enter, io_uring_register, pidfd_getfd
_ARCHITECTURES: Final = {
    "x86_64": _Architecture(
        0xC000003E, 41, 16, (101, 310, 311, 248, 249, 250, 321, 298, 323, 425, 426, 427, 438)
    ),
    "aarch64": _Architecture(
        0xC00000B7, 198, 29, (117, 270, 271, 217, 218, 219, 280, 241, 282, 425, 426, 427, 438)
    ),
}


def is_supported() -> bool:
    """Whether the system calls of this machine are known."""
    return platform.machine() in _ARCHITECTURES


def build_filter(denied_families: tuple[int, ...]) -> bytes:
    """The filter for this machine; sockets of *denied_families* cannot be created."""
    machine = _ARCHITECTURES[platform.machine()]
    program = [
        _load(_ARCHITECTURE_OFFSET),
        _instruction(_JUMP_EQUAL, machine.audit, 1, 0),
        _instruction(_RETURN, _DENY),
        _load(_NUMBER_OFFSET),
        _instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1),
        _instruction(_RETURN, _DENY),
    ]
    for number in machine.denied:
        program += [_instruction(_JUMP_EQUAL, number, 0, 1), _instruction(_RETURN, _DENY)]
    program += _deny_argument(machine.socket, 0, denied_families)
    program += _deny_argument(machine.ioctl, 1, TERMINAL_INPUT_REQUESTS)
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


def _deny_argument(number: int, position: int, values: tuple[int, ...]) -> list[bytes]:
    """Deny a system call where an argument has one of the values."""
    checks = [_load(_ARGUMENT_OFFSET + 8 * position)]
    for value in values:
        checks += [_instruction(_JUMP_EQUAL, value, 0, 1), _instruction(_RETURN, _DENY)]
    checks.append(_load(_NUMBER_OFFSET))
    return [_instruction(_JUMP_EQUAL, number, 0, len(checks)), *checks]


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def restrict_thread(program: bytes) -> None:
    """Apply a filter to this thread and to every process that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    argument = _Program(len(program) // 8, ctypes.addressof(buffer))
    for call in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(argument), 0, 0),
    ):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


_PR_SET_SECUREBITS: Final = 28
_NO_ROOT_LOCKED: Final = 0b101111  # user 0 gets no capabilities from exec, permanently
_PR_CAPBSET_DROP: Final = 24
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION: Final = 0x20080522


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Take root's capabilities from this thread and from every process that it starts.

    A user without them is not affected.
    """
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT_LOCKED, 0, 0, 0)
    for number in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(header), ctypes.byref(nothing)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


_PR_SET_DUMPABLE: Final = 4


def hide_own_memory() -> None:
    """Keep other programs of this user from reading this process: environment, memory.

    Where a sandbox shares /proc with this process, as Landlock's does.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
