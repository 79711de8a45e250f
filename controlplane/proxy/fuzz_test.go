package proxy

import (
	"bufio"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// FuzzMemberPath: what a member is asked for means the same to every server, and
// stays below what the hub has judged.
func FuzzMemberPath(f *testing.F) {
	for _, seed := range []string{
		"", "/", "/api/v1/pods", "/api/v1/namespaces/shop/pods/web/log?follow=true", "/a%2fb", "/a/../b", "/./a", "//a", "/a//b", "/a/",
		"/%2e%2e/a", "/a%00", "/a%5cb", "/%252e", "/a%0d%0aHost:x", "x", "/;a=..", "/..;/a", "/%C0%AF", "/ü", "/a b", "/*", "/a?b=/../c", "/a#b",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, rest string, all bool) {
		cluster, written := "east", "east"
		if all {
			cluster, written = allClusters, "%2A"
		}
		asked, err := url.ParseRequestURI(clusters + written + "/" + subresource + rest)
		if err != nil {
			return
		}
		got, err := memberPath(asked, cluster)
		if err != nil {
			return
		}
		again, err := url.ParseRequestURI(got)
		if err != nil || again.EscapedPath() != got || again.RawQuery != "" || again.Host != "" {
			t.Fatalf("%q becomes %q, which is read as %+v, %v", rest, got, again, err)
		}
		clean := path.Clean(again.Path)
		if strings.HasSuffix(again.Path, "/") && clean != "/" {
			clean += "/"
		}
		if again.Path != clean || strings.ContainsAny(again.Path, "\\\x00%") {
			t.Errorf("%q becomes %q: %q", rest, got, again.Path)
		}
	})
}

// FuzzHeaders: a caller says nothing about who he is, and nothing that he says
// becomes a header of the proxy's.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{
		"", "Accept: application/json", "Authorization: Bearer x", "authorization: x\r\nAUTHORIZATION: y", "Impersonate-User: admin", "impersonate-extra-x: y",
		"X-Remote-User: admin\r\nX-Remote-Extra-A: b", "X-Forwarded-For: 1", "Connection: Upgrade\r\nUpgrade: websocket", "Connection: keep-alive, upgrade\r\nUpgrade: SPDY/3.1",
		"Connection: Authorization, close", "Upgrade: h2c\r\nConnection: upgrade", "Sec-WebSocket-Protocol: v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.dG9r",
		"Sec-Websocket-Protocol:base64url.bearer.authorization.k8s.io.dG9r,x\r\nsec-websocket-protocol: ,", "Impersonate-User : admin", "Impersonate-User\t: admin", "X: a\r\n Impersonate-User: b",
	} {
		f.Add(seed, "anna", "team\nsystem:masters")
		f.Add(seed, "system:serviceaccount:shop:bot", "system:serviceaccounts\nsystem:serviceaccounts:shop\nsystem:serviceaccounts:other\nflotilla:masters")
	}
	f.Fuzz(func(t *testing.T, raw, name, groups string) {
		who := &user.DefaultInfo{Name: name, Groups: strings.Split(groups, "\n")}
		as, err := callerOf(who)
		if err != nil {
			return
		}
		for _, group := range as.groups {
			own := slices.Contains(serviceAccountGroups(name), group)
			if strings.HasPrefix(group, systemGroups) && !own || group == clusterv1alpha1.GroupMasters && !slices.Contains(who.Groups, user.SystemPrivilegedGroup) {
				t.Errorf("%q in %q is in %q in a member", name, who.Groups, group)
			}
		}
		for _, name := range append(slices.Clone(as.groups), as.name) {
			if strings.ContainsAny(name, "\r\n\x00") || name != strings.TrimSpace(name) || name == "" {
				t.Errorf("a member is told %q", name)
			}
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: hub\r\n" + raw + "\r\n\r\n")))
		if err != nil {
			return
		}
		if protocol, err := upgradeOf(req.Header); err == nil && protocol != "" && !strings.EqualFold(protocol, "websocket") && !strings.EqualFold(protocol, "SPDY/3.1") {
			t.Errorf("a connection may become %q", protocol)
		}
		header := req.Header
		strip(header)
		for name, values := range header {
			lower := strings.ToLower(name)
			if strings.HasPrefix(lower, "impersonate-") || strings.HasPrefix(lower, "x-remote") || strings.HasPrefix(lower, "authorization") || lower == "cookie" {
				t.Errorf("the caller's %q is passed on: %q", name, values)
			}
			if lower == "sec-websocket-protocol" && strings.Contains(","+strings.Join(values, ","), ","+bearerProtocol) {
				t.Errorf("the caller's token is passed on: %q", values)
			}
		}
		as.introduce(header, "token")
		want := http.Header{"Authorization": {"Bearer token"}, "Impersonate-User": {as.name}}
		if len(as.groups) > 0 {
			want["Impersonate-Group"] = as.groups
		}
		got := http.Header{}
		for name, values := range header {
			if strings.HasPrefix(name, "Impersonate-") || name == "Authorization" {
				got[name] = values
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("who asks (-want +got):\n%s", diff)
		}
	})
}
