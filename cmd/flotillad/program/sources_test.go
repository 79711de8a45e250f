package program

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/forge"
)

func TestHostPort(t *testing.T) {
	for address, want := range map[string]string{
		"https://127.0.0.1:6443": "127.0.0.1:6443", "https://hub.example": "hub.example:443", "http://[::1]/": "[::1]:80",
		"127.0.0.1:8080": "127.0.0.1:8080", ":8080": ":8080", "etcd:2379": "etcd:2379", "[::1]:2379": "[::1]:2379",
		"unix:///run/etcd.sock": "", "0": "", "": "", "hub.example": "",
	} {
		if got := hostPort(address); got != want {
			t.Errorf("hostPort(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestTheControlPlaneItself: all that this process knows of itself is what
// sources never reach.
func TestTheControlPlaneItself(t *testing.T) {
	serve := &serveOptions{hosts: []string{"hub.example"}}
	serve.plane.Etcd.Servers = []string{"https://etcd-1.example:2379", "unix:///run/etcd.sock"}
	o := sourceOptions{own: serve.addresses("https://127.0.0.1:6443")}
	got := o.dialer(nil, "127.0.0.1:4321", "https://127.0.0.1:6443", ":8080", "0", "").Own
	want := []string{"127.0.0.1:4321", "127.0.0.1:6443", ":8080", "127.0.0.1:6443", "etcd-1.example:2379", "hub.example:6443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProxiesAreTheEnvironments: sources and forges go by the proxies that the program was started with.
func TestProxiesAreTheEnvironments(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	t.Setenv("NO_PROXY", "inner.example")
	o := sourceOptions{revisions: reconciler.Revisions{Brake: ptr.To(inventory.DefaultBrake())}}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"https://git.example.com/x": "http://proxy.example:3128", "https://git.inner.example/x": "<nil>"} {
		u, _ := url.Parse(to)
		if by, err := o.dialer(nil).Proxies(u); err != nil || fmt.Sprint(by) != want {
			t.Errorf("%s goes by %v, %v; want %s", to, by, err, want)
		}
	}
	t.Setenv("HTTPS_PROXY", "ftp://proxy.example")
	if err := o.validate(); err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY: it is no proxy") {
		t.Errorf("error = %v, want one that names the variable", err)
	}
}

// TestForgesHearOfTheLeaderAlone: a status that a replica wants to post without the
// lease is not sent.
func TestForgesHearOfTheLeaderAlone(t *testing.T) {
	var heard atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	o := sourceOptions{networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for name, c := range map[string]struct {
		held *tenure.Tenure
		want int32
	}{
		"with nobody to share the lease with": {nil, 1},
		"without the lease":                   {tenure.New(clock.RealClock{}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			heard.Store(0)
			poster, err := forge.New(forge.Provider{Type: "gitea", Address: server.URL + "/shop/web", Secret: map[string][]byte{"token": []byte("t")}},
				forge.Options{Timeout: time.Minute, Egress: o.dialer(c.held)})
			if err != nil {
				t.Fatal(err)
			}
			err = poster.Post(t.Context(), forge.Status{Commit: strings.Repeat("a", 40), State: forge.Success, Context: "fleet"})
			if over := errors.Is(err, tenure.ErrOver); over != (c.want == 0) || !over && err != nil {
				t.Errorf("post: %v", err)
			}
			if got := heard.Load(); got != c.want {
				t.Errorf("the forge has heard of %d statuses, want %d", got, c.want)
			}
		})
	}
}

func TestSourceNetworksAreChecked(t *testing.T) {
	for _, of := range [][]string{{"serve", "--data-dir=unused"}, {"controllers", "--kubeconfig=unused"}} {
		cmd := New(Options{})
		cmd.SetArgs(append(of, "--source-networks=10.0.0.0/8,intranet"))
		var reported strings.Builder
		cmd.SetOut(io.Discard)
		cmd.SetErr(&reported)
		if code := command.Run(t.Context(), cmd); code != 2 || !strings.Contains(reported.String(), `--source-networks: "intranet" is no network`) {
			t.Errorf("%s ends with %d: %s", of[0], code, reported.String())
		}
	}
}

// A port that is taken is reported with the flag that names another one.
func TestServeOnAPortThatIsTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a store")
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, err := net.SplitHostPort(busy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := New(Options{})
	cmd.SetArgs([]string{"serve", "--data-dir", filepath.Join(t.TempDir(), "hub"), "--secure-port", port})
	var reported strings.Builder
	cmd.SetOut(io.Discard)
	cmd.SetErr(&reported)
	if code := command.Run(t.Context(), cmd); code != 1 || !strings.HasSuffix(reported.String(), "address already in use; choose another --secure-port\n") {
		t.Errorf("serve ends with %d: %s", code, reported.String())
	}
}
