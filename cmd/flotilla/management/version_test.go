package management

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersionsThatMayNotBeRead: a line that is missing says nothing to anybody.
func TestVersionsThatMayNotBeRead(t *testing.T) {
	client := clientVersion{Version: "v1.2.3"}
	for name, tc := range map[string]struct {
		server *serverVersion
		want   string
	}{
		"nobody was asked":     {nil, "Client Version: v1.2.3\n"},
		"one that says it":     {&serverVersion{Version: "v1.2.4", Kubernetes: "v1.36.4"}, "Client Version: v1.2.3\nServer Version: v1.2.4\nServer Kubernetes Version: v1.36.4\n"},
		"one that may not say": {&serverVersion{Kubernetes: "v1.36.4", unread: true}, "Client Version: v1.2.3\nServer Version: not known: you may not read the ConfigMap karmada-system/flotilla-info\nServer Kubernetes Version: v1.36.4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, versions{Client: client, Server: tc.server}.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
