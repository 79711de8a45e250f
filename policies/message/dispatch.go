package message

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// dispatch starts workflows of a repository on GitHub.
func dispatch(p Provider, e alerting.Event, r *Request) (any, error) {
	owner, repository, err := repositoryOf(r.URL)
	if err != nil {
		return nil, err
	}
	api := &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: "/api/v3"}
	if host := strings.ToLower(r.URL.Hostname()); host == "github.com" || host == "www.github.com" {
		api = &url.URL{Scheme: "https", Host: "api.github.com"}
	}
	r.URL = api.JoinPath("repos", url.PathEscape(owner), url.PathEscape(repository), "dispatches")
	r.Header["Accept"] = "application/vnd.github+json"
	if r.App = p.App(); !r.App {
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		r.Header["Authorization"] = "Bearer " + token
	}
	const mostType = 100 // bytes, GitHub's limit
	kind := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name + "." + e.InvolvedObject.Namespace
	return map[string]any{"event_type": kind[:min(len(kind), mostType)], "client_payload": e}, nil
}

// repositoryOf returns what the address of a repository on GitHub names.
func repositoryOf(address *url.URL) (owner, repository string, err error) {
	parts := strings.Split(strings.Trim(strings.TrimSuffix(strings.Trim(address.Path, "/"), ".git"), "/"), "/")
	if len(parts) != 2 || slices.ContainsFunc(parts, func(part string) bool { return part == "" || strings.Trim(part, ".") == "" }) {
		return "", "", fmt.Errorf("%w: its address must be https://github.com/<owner>/<repository>, or that of your own server", ErrProvider)
	}
	return parts[0], parts[1], nil
}

// shell matches an address as SSH has it without a scheme: git@github.com:owner/repository.git.
var shell = regexp.MustCompile(`^[^\s@/:]+@([^\s@/:]+):([^\s:]+)$`)

// overHTTPS returns the address of a repository by HTTPS, in place of one by SSH, as Flux does: the API is on the same host, and not on
// the same port.
func overHTTPS(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme == "ssh" && u.Hostname() != "" {
		host := u.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return (&url.URL{Scheme: "https", Host: host, Path: u.Path}).String()
	}
	if at := shell.FindStringSubmatch(address); at != nil {
		return "https://" + at[1] + "/" + strings.TrimPrefix(at[2], "/")
	}
	return address
}
