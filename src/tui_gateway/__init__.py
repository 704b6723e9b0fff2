"""The terminal UI's server: conversations over JSON-RPC, one object per line.

finalizing   how a live session ends: saved, announced, remembered, closed
server       the seams that other programs know
"""
