package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	// clusters begins the paths of all Clusters.
	clusters = "/apis/" + clusterv1alpha1.GroupName + "/v1alpha1/" + clusterv1alpha1.ResourcePluralCluster + "/"
	// subresource is the sub-resource that this package serves.
	subresource = "proxy"
)

// prefix is the path of the sub-resource for one cluster.
func prefix(cluster string) string { return clusters + cluster + "/" + subresource }

// memberPath returns the path at the member that a request is for,
// escaped as it came. It refuses a path that two servers could understand
// differently.
func memberPath(u *url.URL, cluster string) (string, error) {
	escaped := u.EscapedPath()
	if cluster == allClusters { // clients of Kubernetes escape the name now and then
		escaped = strings.Replace(escaped, clusters+"%2A/", clusters+allClusters+"/", 1)
	}
	rest, ok := strings.CutPrefix(escaped, prefix(cluster))
	switch {
	case !ok:
		return "", errors.New("the path before /proxy must not be escaped")
	case rest == "":
		return "/", nil
	case rest[0] != '/':
		return "", errors.New("the path after /proxy must begin with a slash")
	}
	return rest, checkPath(rest)
}

// checkPath refuses escaped paths that servers could understand in different ways.
func checkPath(path string) error {
	lower := strings.ToLower(path)
	for _, forbidden := range []struct{ encoded, what string }{
		{"%2f", "an encoded slash"}, {"%5c", "a backslash"}, {"%2e", "an encoded dot"}, {"%00", "a NUL"}, {"%25", "an encoded percent sign"},
	} {
		if strings.Contains(lower, forbidden.encoded) {
			return fmt.Errorf("the path holds %s", forbidden.what)
		}
	}
	for i, part := range strings.Split(path[1:], "/") {
		switch {
		case part == "." || part == "..":
			return fmt.Errorf("the path holds the element %q", part)
		case part == "" && i != strings.Count(path[1:], "/"):
			return errors.New("the path holds an empty element")
		}
	}
	return nil
}

// upgradeOf returns the protocol that a request asks to switch to; empty if it
// asks for none. It refuses those that no client of a cluster speaks.
func upgradeOf(header http.Header) (string, error) {
	asked := false
	for _, value := range header.Values("Connection") {
		for token := range strings.SplitSeq(value, ",") {
			asked = asked || strings.EqualFold(strings.TrimSpace(token), "Upgrade")
		}
	}
	values := header.Values("Upgrade")
	if !asked {
		return "", nil // a header without effect, which is not passed on
	}
	if len(values) == 1 && (strings.EqualFold(values[0], "SPDY/3.1") || strings.EqualFold(values[0], "websocket")) {
		return values[0], nil
	}
	return "", errors.New("only connections that become SPDY/3.1 or websocket are passed on")
}
