package proxy

import (
	"net/http"
	"testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestClustersWithoutAnID: where nobody knows who a cluster is, only its
// certificate can show it, and no request goes to whoever answers.
func TestClustersWithoutAnID(t *testing.T) {
	cases := map[string]struct {
		edit func(*clusterv1alpha1.Cluster)
		noCA bool
		code int
		says string
		seen int // requests that passed
	}{
		"its own CA shows it": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }, code: http.StatusOK, says: "fine", seen: 1,
		},
		"a certificate that is not checked shows nothing": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ID, c.Spec.InsecureSkipTLSVerification = "", true },
			code: http.StatusServiceUnavailable, says: "cluster a: it has no spec.id and its certificate is not checked by a CA of its own",
		},
		"nor does one that some public authority signed": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }, noCA: true,
			code: http.StatusServiceUnavailable, says: "set spec.id to the UID of its namespace kube-system, or give its secret a caBundle",
		},
		"with an id the certificate may go unchecked": {
			edit: func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true }, code: http.StatusOK, says: "fine", seen: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			m := s.join(t, "a", fine)
			s.change("a", tc.edit)
			if tc.noCA {
				s.mu.Lock()
				delete(s.secrets["a"].Data, clusterv1alpha1.SecretCADataKey)
				s.mu.Unlock()
			}
			check(t, s.get(t, "a", "/api", http.Header{}), tc.code, tc.says)
			if seen := m.requests(); len(seen) != tc.seen {
				t.Errorf("%d requests passed, want %d", len(seen), tc.seen)
			}
		})
	}
}
