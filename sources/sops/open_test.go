package sops

import "testing"

func TestWhatIsNoSecret(t *testing.T) {
	for _, tc := range []struct {
		path   []string
		secret bool
	}{
		{[]string{"kind"}, false},
		{[]string{"metadata", "name"}, false},
		{[]string{"metadata", "namespace"}, false},
		{[]string{"metadata", "annotations", "token"}, true},
		{[]string{"stringData", "kind"}, true},
	} {
		if got := secret(tc.path); got != tc.secret {
			t.Errorf("%v: %t, want %t", tc.path, got, tc.secret)
		}
	}
}
