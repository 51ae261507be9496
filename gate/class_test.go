package gate

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func classOf(c *classes, path, value string) string {
	r := &http.Request{URL: &url.URL{Path: path}, Header: http.Header{}}
	if value != "" {
		r.Header.Set("x-priority", value)
	}
	return c.names[c.of(r)]
}

func TestTheLongestPrefixOfThePathGivesTheClassUnlessTheHeaderDoes(t *testing.T) {
	const paths = "/checkout=critical, /search=normal,/search/similar/=low,/=normal"
	c, err := parseClasses("x-priority=critical,normal,low", paths)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct{ path, header, want string }{
		{"/checkout", "", "critical"}, {"/checkout/1", "", "critical"}, {"/checkouts", "", "normal"}, {"/", "", "normal"}, {"*", "", "normal"}, {"", "", "normal"},
		{"/search", "", "normal"}, {"/search/similar", "", "low"}, {"/search/similar/2", "", "low"}, {"/search/similarly", "", "normal"},
		{"/search/../checkout", "", "critical"}, {"//checkout", "", "critical"}, {"/search/./similar", "", "low"}, {"/.well-known", "", "normal"},
		{"/checkout", "low", "low"}, {"/search/similar", "critical", "critical"}, {"/checkout", "other", "critical"},
	} {
		if got := classOf(&c, of.path, of.header); got != of.want {
			t.Errorf("%q with %q: %s, want %s", of.path, of.header, got, of.want)
		}
	}
}

func TestPathsAloneRankTheClassesInTheOrderOfTheirNames(t *testing.T) {
	c, err := parseClasses("", "/a=gold,/b=bronze,/c=gold,/d=silver")
	if err != nil || strings.Join(c.names, " ") != "gold bronze silver" {
		t.Fatal(c.names, err)
	}
	for path, want := range map[string]string{"/c": "gold", "/b": "bronze", "/x": "bronze"} { // no path: last but one
		if got := classOf(&c, path, "gold"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestWrongClassesSayWhatIsWrong(t *testing.T) {
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	for text, want := range map[[2]string]string{
		{"", "checkout=critical"}:                      "is not /PATH=CLASS",
		{"", "/checkout"}:                              "is not /PATH=CLASS",
		{"", "/checkout="}:                             "is not /PATH=CLASS",
		{"", "/a=x,"}:                                  "is not /PATH=CLASS",
		{"", "/a=x,/a/=y"}:                             "written twice",
		{"x-priority=critical,low", "/a=medium"}:       "is no value of --class",
		{"", many(maxPaths+1, "/p%d=x")}:               "at most 64",
		{"", many(maxClasses+1, "/p%[1]d=class%[1]d")}: "at most 16",
	} {
		if _, err := parseClasses(text[0], text[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q in it", text, err, want)
		}
	}
}

func FuzzClassPath(f *testing.F) {
	f.Add("/checkout=critical,/search=normal", "/search/../x")
	f.Add("/=a", "*")
	f.Fuzz(func(t *testing.T, paths, path string) {
		c, err := parseClasses("", paths)
		if err != nil {
			return
		}
		if i := c.of(&http.Request{URL: &url.URL{Path: path}}); i < 0 || i >= len(c.names) || len(c.names) > maxClasses {
			t.Errorf("%q of %q: class %d of %v", path, paths, i, c.names)
		}
	})
}
