package submodule

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/flotilla-io/flotilla/sources/origin"
)

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
	if long := origin.Long(raw); long != "" {
		raw = long
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
