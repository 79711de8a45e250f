package submodule

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/sources/origin"
)

// short matches the short form of an SSH address, user@host:path.
var short = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9_][A-Za-z0-9_.-]*):([^:].*)$`)

var errNoURL = errors.New("is not the URL of a repository: write https://host/path, ssh://user@host/path or a relative one")

// resolve returns the URL of a submodule. A relative one is resolved against that
// of the repository whose commit has it, and inherits its user information.
func resolve(parent *url.URL, raw string) (*url.URL, error) {
	if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errNoURL
	}
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") {
		return relative(parent, raw)
	}
	if m := short.FindStringSubmatch(raw); m != nil && !strings.Contains(raw, "://") {
		raw = (&url.URL{Scheme: "ssh", User: url.User(m[1]), Host: m[2], Path: "/" + strings.TrimPrefix(m[3], "/")}).String()
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh" {
		return nil, errNoURL
	}
	if u.User == nil && origin.Same(u, parent) {
		u.User = parent.User
	}
	return u, nil
}

// relative walks from the path of the parent: each .. leaves one element of it.
func relative(parent *url.URL, raw string) (*url.URL, error) {
	at := strings.Split(strings.Trim(parent.EscapedPath(), "/"), "/")
	for step := range strings.SplitSeq(raw, "/") {
		switch step {
		case "", ".":
		case "..":
			if len(at) == 0 {
				return nil, fmt.Errorf("leads above the root of %s", parent.Host)
			}
			at = at[:len(at)-1]
		default:
			at = append(at, step)
		}
	}
	u, err := parent.Parse("/" + strings.Join(at, "/"))
	if err != nil || u.Host != parent.Host {
		return nil, errNoURL
	}
	u.User = parent.User
	return u, nil
}
