package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/author"
)

// A caller is the identity that a request to a member carries.
type caller struct {
	name   string
	groups []string
}

const (
	systemGroups = "system:"
	nodeUsers    = "system:node:"
	kubeUsers    = "system:kube-"
)

// callerOf returns the identity that a member sees for a user of the hub. Groups that the hub gives
// a meaning to mean something else in a member, and are dropped. The exceptions: the hub's
// administrators become members' administrators, by a group of Flotilla's that no user of
// a member has otherwise, and service accounts keep their groups.
func callerOf(u user.Info) (caller, error) {
	if u == nil || u.GetName() == "" || u.GetName() == user.Anonymous {
		return caller{}, errors.New("nobody reaches a member without saying who he is")
	}
	name := u.GetName()
	if strings.HasPrefix(name, nodeUsers) || strings.HasPrefix(name, kubeUsers) {
		return caller{}, fmt.Errorf("the user %q is a part of a cluster, and means another one in a member", name)
	}
	if strings.HasPrefix(name, author.Prefix) {
		return caller{}, fmt.Errorf("the user %q is called as those whom members know by the control plane alone", name)
	}
	if err := plain(name); err != nil {
		return caller{}, fmt.Errorf("the user name %w", err)
	}
	out := caller{name: name}
	own := serviceAccountGroups(name)
	for _, group := range u.GetGroups() {
		switch {
		case group == user.SystemPrivilegedGroup:
			group = clusterv1alpha1.GroupMasters
		case strings.HasPrefix(group, author.Prefix):
			continue // such groups are only the hub's to give
		case strings.HasPrefix(group, systemGroups) && !slices.Contains(own, group):
			continue
		}
		if err := plain(group); err != nil {
			return caller{}, fmt.Errorf("the group %w", err)
		}
		if !slices.Contains(out.groups, group) {
			out.groups = append(out.groups, group)
		}
	}
	return out, nil
}

// serviceAccountGroups returns the groups of a service account; none for other users.
func serviceAccountGroups(name string) []string {
	namespace, _, err := serviceaccount.SplitUsername(name)
	if err != nil {
		return nil
	}
	return serviceaccount.MakeGroupNames(namespace)
}

// plain refuses names that a header would not carry unchanged.
func plain(name string) error {
	if name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%q cannot be told to a member", name)
	}
	return nil
}

// identifying reports whether a header is not passed on: it names the caller,
// or the one on whose behalf it asks, and only the proxy may set that.
func identifying(name string) bool {
	switch name {
	case "Authorization", "Cookie", "Cookie2", "Audit-Id", "Forwarded", "Via":
		return true
	}
	for _, of := range []string{"Impersonate-", "X-Remote-", "X-Forwarded-", "Proxy-"} {
		if len(name) >= len(of) && strings.EqualFold(name[:len(of)], of) {
			return true
		}
	}
	return false
}

// bearerProtocol begins the sub-protocol in which browsers send a token.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// strip removes the headers of a request that are not meant for the member.
func strip(header http.Header) {
	for name := range header {
		if identifying(name) {
			delete(header, name)
		}
	}
	const protocols = "Sec-Websocket-Protocol"
	var kept []string
	for _, value := range header.Values(protocols) {
		for protocol := range strings.SplitSeq(value, ",") {
			if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.HasPrefix(protocol, bearerProtocol) {
				kept = append(kept, protocol)
			}
		}
	}
	header.Del(protocols)
	if len(kept) > 0 {
		header.Set(protocols, strings.Join(kept, ", "))
	}
}

// introduce sets the headers that name the caller.
func (c caller) introduce(header http.Header, token string) {
	header.Set("Authorization", "Bearer "+token)
	header.Set("Impersonate-User", c.name)
	for _, group := range c.groups {
		header.Add("Impersonate-Group", group)
	}
}
