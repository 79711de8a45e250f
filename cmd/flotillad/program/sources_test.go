package program

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/command"
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
	got := o.dialer("127.0.0.1:4321", "https://127.0.0.1:6443", ":8080", "0", "").Own
	want := []string{"127.0.0.1:4321", "127.0.0.1:6443", ":8080", "127.0.0.1:6443", "etcd-1.example:2379", "hub.example:6443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSourceNetworksAreChecked(t *testing.T) {
	for _, of := range [][]string{{"serve", "--data-dir=unused"}, {"controllers", "--kubeconfig=unused"}} {
		cmd := New(Options{})
		cmd.SetArgs(append(of, "--source-networks=10.0.0.0/8,intranet"))
		var said strings.Builder
		cmd.SetOut(io.Discard)
		cmd.SetErr(&said)
		if code := command.Run(t.Context(), cmd); code != 2 || !strings.Contains(said.String(), `--source-networks: "intranet" is no network`) {
			t.Errorf("%s ends with %d: %s", of[0], code, said.String())
		}
	}
}
