"""`iosig report`: one HTML page that shows what traces have, without a network and without other files.

`numbers` gets what is shown from the core and from other commands; `page` makes the HTML of it, with the parts of
`scripts`, which draw.
"""
