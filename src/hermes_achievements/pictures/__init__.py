"""Pictures of achievements and recaps, drawn as SVG.

svg          SVG elements, text layout and PNG conversion
medal        the medal of an achievement
badges       the wall of badges
card         the share card of an achievement
heat_map     days on a grid with activity levels
recap_card   a recap as a picture
recap_page   a recap as a self-contained HTML page
"""
