package registration

import "testing"

func TestWhereClustersFindTheControlPlane(t *testing.T) {
	cases := map[string]struct{ here, says, want string }{
		"it says where, and the caller is beside it":       {"127.0.0.1:6443", "hub.example:6443", "hub.example:6443"},
		"it says where, and the caller has another way":    {"10.0.0.5:6443", "hub.example:6443", "hub.example:6443"},
		"it knows no address but that of its own machine":  {"10.0.0.5:6443", "127.0.0.1:6443", "10.0.0.5:6443"},
		"nobody knows an address but that of this machine": {"localhost:6443", "[::1]:6443", "localhost:6443"},
		"it says nothing": {"10.0.0.5:6443", "", "10.0.0.5:6443"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (published{address: tc.says}).elsewhere(tc.here); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
