package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func TestTheVersionOfAMemberIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ says, want string }{
		"an ordinary one":    {"v1.36.4-eks-1a2b3c4", "v1.36.4-eks-1a2b3c4"},
		"one without an end": {strings.Repeat("v", 5000), strings.Repeat("v", 37) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/version" {
					_ = json.NewEncoder(w).Encode(version.Info{GitVersion: tc.says})
					return
				}
				_, _ = w.Write([]byte("{}"))
			}))
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got := readKinds(client)
			if diff := cmp.Diff(tc.want, got.version); diff != "" || got.err != nil {
				t.Errorf("version (-want +got):\n%s%v", diff, got.err)
			}
		})
	}
}
