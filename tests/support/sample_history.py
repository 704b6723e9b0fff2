"""Names in the small history that the command tests show."""

OSLO = "20260301_101500_aaaaaa"
CHAT = "20260302_090000_bbbbbb"
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}
