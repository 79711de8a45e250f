package submodule

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/origin"
)

// TestResolve is about where the URL of a submodule leads.
func TestResolve(t *testing.T) {
	for name, tc := range map[string]struct{ parent, raw, want string }{
		"beside the parent":              {"https://h.example/acme/app.git", "../lib.git", "https://h.example/acme/lib.git"},
		"of another owner":               {"https://h.example/acme/app.git", "../../other/lib", "https://h.example/other/lib"},
		"below the parent":               {"https://h.example/acme/app.git/", "./lib", "https://h.example/acme/app.git/lib"},
		"with the user of the parent":    {"ssh://git@h.example:2222/acme/app", "../lib", "ssh://git@h.example:2222/acme/lib"},
		"above the root":                 {"https://h.example/acme/app.git", "../../../lib", "error: leads above the root of h.example"},
		"the root itself":                {"https://h.example/app", "../", "https://h.example/"},
		"to another host by a path":      {"https://h.example/app", ".././/evil.example/x", "https://h.example/evil.example/x"},
		"a full URL":                     {"https://h.example/app", "https://else.example/lib", "https://else.example/lib"},
		"a full URL of the same host":    {"https://bot:key@h.example/app", "https://H.example:443/lib", "https://bot:key@H.example:443/lib"},
		"one of the same host over http": {"https://bot:key@h.example/app", "http://h.example/lib", "http://h.example/lib"},
		"one of another port":            {"https://bot:key@h.example/app", "https://h.example:8443/lib", "https://h.example:8443/lib"},
		"the short form of SSH":          {"https://h.example/app", "git@else.example:acme/lib.git", "ssh://git@else.example/acme/lib.git"},
		"the short form, from the root":  {"https://h.example/app", "git@else.example:/srv/lib.git", "ssh://git@else.example/srv/lib.git"},
		"a file":                         {"https://h.example/app", "file:///etc", "error: " + errNoURL.Error()},
		"a folder":                       {"https://h.example/app", "/srv/git/lib", "error: " + errNoURL.Error()},
		"a program":                      {"https://h.example/app", "ext::sh -c id", "error: " + errNoURL.Error()},
		"a program, in the short form":   {"https://h.example/app", "git@ext::sh", "error: " + errNoURL.Error()},
		"an option":                      {"https://h.example/app", "-u/bin/sh", "error: " + errNoURL.Error()},
		"an option as the host":          {"https://h.example/app", "git@-oProxyCommand=id:x", "error: " + errNoURL.Error()},
		"git's own protocol":             {"https://h.example/app", "git://h.example/lib", "error: " + errNoURL.Error()},
		"two lines":                      {"https://h.example/app", "../lib\nHost: x", "error: " + errNoURL.Error()},
		"nothing":                        {"https://h.example/app", "", "error: " + errNoURL.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			parent, err := url.Parse(tc.parent)
			if err != nil {
				t.Fatal(err)
			}
			u, err := resolve(parent, tc.raw)
			got := ""
			if err != nil {
				got = "error: " + err.Error()
			} else {
				got = u.String()
			}
			if got != tc.want {
				t.Errorf("%s from %s = %s, want %s", tc.raw, tc.parent, got, tc.want)
			}
		})
	}
}

// TestBelow is about which folders of a submodule are wanted.
func TestBelow(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted []string
		at     string
		want   []string
	}{
		"all":                     {[]string{"."}, "libs/a", []string{"."}},
		"the submodule itself":    {[]string{"libs/a"}, "libs/a", []string{"."}},
		"a folder that it is in":  {[]string{"libs"}, "libs/a", []string{"."}},
		"folders of it":           {[]string{"libs/a/x", "libs/a/y", "z"}, "libs/a", []string{"x", "y"}},
		"others":                  {[]string{"libs/ab", "lib"}, "libs/a", nil},
		"the root, of some of it": {[]string{"libs"}, ".", []string{"libs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, below(tc.wanted, tc.at)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParse: a .gitmodules is the word of a stranger.
func FuzzParse(f *testing.F) {
	f.Add([]byte("[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a.git\n"), "https://u:p@h.example/acme/app.git")
	f.Add([]byte("[submodule \"../x\"]\npath=..\nurl=ext::sh -c id\n[submodule \"b\"]\npath=.git\nurl=-u\n"), "ssh://git@h.example/app")
	f.Fuzz(func(t *testing.T, text []byte, parent string) {
		base, err := url.Parse(parent)
		if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "ssh" {
			t.Skip()
		}
		urls, err := parse(text)
		if err != nil {
			return
		}
		for at, raw := range urls {
			u, err := resolve(base, raw)
			if err != nil {
				continue
			}
			if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh" || u.Host == "" {
				t.Errorf("%q leads to %q", at, u)
			}
			if base.User != nil && u.User == base.User && !origin.Same(u, base) {
				t.Errorf("the user of %s goes to %s", base, u)
			}
		}
	})
}
