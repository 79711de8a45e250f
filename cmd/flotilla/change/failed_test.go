package change

import (
	"errors"
	"net/url"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// TestWhoseFaultItIs: where two servers are asked, what one of them does not answer is not reported
// the other.
func TestWhoseFaultItIs(t *testing.T) {
	p := &promoteFlags{fleet: &fleet.Flags{}, cluster: "west", kubeconfig: "west/kubeconfig", host: "https://127.0.0.1:1"}
	of := func(at string) string {
		return p.failed(&url.Error{Op: "Get", URL: at + "/api/v1/namespaces/kube-system", Err: errors.New("TLS handshake timeout")}).Error()
	}
	for at, want := range map[string]string{
		"https://127.0.0.1:1": `cluster west does not answer: Get "https://127.0.0.1:1/api/v1/namespaces/kube-system": TLS handshake timeout; --cluster-kubeconfig names the file that leads to it`,
		"https://127.0.0.1:2": "no control plane answers at https://127.0.0.1:2: TLS handshake timeout; see whether flotillad serve runs there, or --kubeconfig names the file that leads elsewhere",
	} {
		if got := of(at); got != want {
			t.Errorf("%s: it says %q, want %q", at, got, want)
		}
	}
}
