package forge_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/sources/forge"
)

// web is the status in most of these tests, and webKey the SHA-1 of its context.
var web = forge.Status{Commit: commit, Context: "Kustomization/Web/1a2b3c4d", State: forge.Failure, Description: "2/3 clusters ready:\n\teu-3 waits", TargetURL: "https://hub.example.com/x"}

const webKey = "36700b19253d8b1b7e60a9113b66acf89ef3c667"

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestPostBitbucketCloud(t *testing.T) {
	const (
		target = "/2.0/repositories/acme/fleet/commit/"
		body   = `{"description":"2/3 clusters ready: eu-3 waits","key":"` + webKey + `","name":"kustomization/web/1a2b3c4d","state":"FAILED","url":"https://hub.example.com/x"}`
	)
	want := func(authorization, body string) request {
		return request{Method: "POST", Host: "api.bitbucket.org", Target: target + commit + "/statuses/build", Header: asked(authorization), Body: body}
	}
	in := func(state forge.State, link string) forge.Status {
		return forge.Status{Commit: commit, Context: web.Context, State: state, TargetURL: link}
	}
	of := func(state, link string) string {
		return `{"key":"` + webKey + `","name":"kustomization/web/1a2b3c4d","state":"` + state + `","url":"` + link + `"}`
	}
	page := "https://bitbucket.org/acme/fleet/commits/" + commit
	cases := map[string]posting{
		"with an access token":                       {address: "https://bitbucket.org/acme/fleet", status: web, want: want("Bearer "+canary, body)},
		"with a user and an API token in one":        {address: "https://bitbucket.org/acme/fleet.git", secret: map[string]string{"token": "me@acme.test:" + canary + "\n"}, status: web, want: want(basic("me@acme.test", canary), body)},
		"with a user name and a password":            {address: "https://me@bitbucket.org/acme/fleet/", secret: map[string]string{"username": "me", "password": canary + ":x\n"}, status: web, want: want(basic("me", canary+":x"), body)},
		"with a token beside a user name":            {address: "https://bitbucket.org/acme/fleet", secret: map[string]string{"username": "me", "password": "p", "token": canary}, status: web, want: want("Bearer "+canary, body)},
		"an address without encryption":              {address: "http://Bitbucket.org/acme/fleet", status: web, want: want("Bearer "+canary, body)},
		"a pending one links to the commit":          {address: "https://bitbucket.org/acme/fleet", status: in(forge.Pending, ""), want: want("Bearer "+canary, of("INPROGRESS", page))},
		"a link that Bitbucket refuses":              {address: "https://bitbucket.org/acme/fleet", status: in(forge.Success, "http://hub:8080/x"), want: want("Bearer "+canary, of("SUCCESSFUL", page))},
		"a link to an address of IPv6":               {address: "https://bitbucket.org/acme/fleet", status: in(forge.Success, "http://[2001:db8::1]/x"), want: want("Bearer "+canary, of("SUCCESSFUL", "http://[2001:db8::1]/x"))},
		"a context that is longer than a key may be": {address: "https://bitbucket.org/acme/fleet", status: forge.Status{Commit: commit, Context: strings.Repeat("x", 300), State: forge.Success}, want: want("Bearer "+canary, `{"key":"2b3524d41f3152bf947c2693149f85f469f64948","name":"`+strings.Repeat("x", 254)+`…","state":"SUCCESSFUL","url":"`+page+`"}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.try(t, "bitbucket", newContract(t, "api.bitbucket.org")) })
	}
}

func TestPostBitbucketDataCenter(t *testing.T) {
	f := newContract(t)
	host := strings.TrimPrefix(f.server.URL, "http://")
	want := func(below, project, authorization, state, link string) request {
		return request{
			Method: "POST", Host: host, Target: below + "/rest/api/latest/projects/" + project + "/repos/fleet/commits/" + commit + "/builds",
			Header: asked(authorization, "X-Atlassian-Token", "no-check"),
			Body:   `{"description":"2/3 clusters ready: eu-3 waits","key":"` + webKey + `","name":"kustomization/web/1a2b3c4d","parent":"kustomization/web/1a2b3c4d","state":"` + state + `","url":"` + link + `"}`,
		}
	}
	as := func(state forge.State, link string) forge.Status {
		s := web
		s.State, s.TargetURL = state, link
		return s
	}
	bearer, link := "Bearer "+canary, web.TargetURL
	cases := map[string]posting{
		"as for a clone":                    {address: "/scm/acme/fleet.git", status: web, want: want("", "acme", bearer, "FAILED", link)},
		"as in a browser":                   {address: "/projects/ACME/repos/fleet", status: as(forge.Success, link), want: want("", "ACME", bearer, "SUCCESSFUL", link)},
		"as in a browser, of a person":      {address: "/users/me/repos/fleet/", status: as(forge.Pending, link), want: want("", "~me", bearer, "INPROGRESS", link)},
		"as for a clone, of a person":       {address: "/scm/~me/fleet", status: web, want: want("", "~me", bearer, "FAILED", link)},
		"below a path":                      {address: "/git/bitbucket/scm/acme/fleet.git", status: web, want: want("/git/bitbucket", "acme", bearer, "FAILED", link)},
		"below a path, as in a browser":     {address: "/git/projects/ACME/repos/fleet", status: as(forge.Failure, ""), want: want("/git", "ACME", bearer, "FAILED", f.server.URL+"/git/projects/ACME/repos/fleet/commits/"+commit)},
		"a project by the name of a form":   {address: "/projects/scm/repos/fleet", status: web, want: want("", "scm", bearer, "FAILED", link)},
		"a link within the network":         {address: "/scm/acme/fleet.git", status: as(forge.Failure, "http://hub/x"), want: want("", "acme", bearer, "FAILED", "http://hub/x")},
		"with a user name and a password":   {address: "/scm/acme/fleet.git", secret: map[string]string{"username": "me", "password": canary}, status: web, want: want("", "acme", basic("me", canary), "FAILED", link)},
		"with a user and a password in one": {address: "/scm/acme/fleet.git", secret: map[string]string{"token": "me:" + canary}, status: web, want: want("", "acme", basic("me", canary), "FAILED", link)},
		"a project with a space":            {address: "/scm/a%20b/fleet.git", status: web, want: want("", "a%20b", bearer, "FAILED", link)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.address = f.server.URL + tc.address
			tc.try(t, "bitbucketserver", f)
		})
	}
}
