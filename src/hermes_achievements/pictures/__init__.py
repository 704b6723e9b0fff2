"""Pictures of what was earned and of what a period was like, drawn as SVG.

lettering    how wide words are, so that they can be cut and folded
drawing      the pieces every picture is made of; all text goes through here
medal        one achievement's medal
badges       the wall of badges
card         the share card of one achievement
heat         days on a grid, and how warm each of them is
recap_card   a look back on one card
recap_page   a look back as an HTML page that needs nothing else
raster       an SVG as PNG
"""
