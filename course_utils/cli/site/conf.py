"""How Sphinx makes pages of the notebooks."""

project = html_title = "Attention, by running it"
language = "en"
root_doc = "index"
extensions = ["myst_nb", "course_utils.cli.site.extension", "course_utils.cli.site.live_figures"]

html_theme = "furo"
html_favicon = "icon.svg"
html_static_path = ["course.css", "course.js"]
html_css_files = ["course.css"]
html_js_files = [("course.js", {"defer": "defer"})]
html_copy_source = False
html_show_copyright = False
pygments_dark_style = "github-dark"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
myst_update_mathjax = False

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # the default stands on another host
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Show the output"
nb_code_prompt_hide = "Hide the output"
