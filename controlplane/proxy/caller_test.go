package proxy

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestNobodyComesAsAnAuthor: by the names that members know authors by, nobody comes
// through the proxy.
func TestNobodyComesAsAnAuthor(t *testing.T) {
	if got, err := callerOf(&user.DefaultInfo{Name: "flotilla:user:alice"}); err == nil {
		t.Errorf("comes as %+v", got)
	}
	got, err := callerOf(&user.DefaultInfo{Name: "alice", Groups: []string{"dev", "flotilla:authors", "flotilla:group:ops"}})
	if err != nil || len(got.groups) != 1 || got.groups[0] != "dev" {
		t.Errorf("comes as %+v, %v", got, err)
	}
}
