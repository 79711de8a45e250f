package program

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGreeting(t *testing.T) {
	const ready = "the control plane is ready after 3.1s: https://127.0.0.1:6443, administrator's kubeconfig /hub/admin.kubeconfig\n"
	const shell, status = "\nnext, in another shell:\n  export KUBECONFIG=/hub/admin.kubeconfig\n",
		"  flotilla status                                # what is there, and what to do next\n" +
			"\nFrom here on only what matters is shown; /hub/flotillad.log has all, -v 0 shows it here. Ctrl-C stops.\n\n"
	cases := map[string]struct {
		log    string
		first  bool
		before string
		want   string
	}{
		"nobody looks":        {first: true, want: ready},
		"the first start":     {log: "/hub/flotillad.log", first: true, want: ready + shell + "  flotilla join NAME --cluster-kubeconfig FILE   # a cluster; to try: flotillad member --name NAME --data-dir DIR\n" + status},
		"a start after that":  {log: "/hub/flotillad.log", want: ready + shell + status},
		"another start alone": {want: ready},
		"where it was before": {before: "https://127.0.0.1:6443", want: ready},
		"somewhere else":      {before: "https://127.0.0.1:41679", want: ready + "it was at 127.0.0.1:41679 before: agents and copies of its kubeconfig look for it there; --secure-port 41679 and the same --bind-address bring it back\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := greeting{took: 3100 * time.Millisecond, url: "https://127.0.0.1:6443", kubeconfig: "/hub/admin.kubeconfig", log: tc.log, first: tc.first, before: tc.before}
			if diff := cmp.Diff(tc.want, g.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStarting: what starts says so, and where, before it is ready.
func TestStarting(t *testing.T) {
	for name, tc := range map[string]struct {
		address   string
		port      int
		otherwise string
		want      string
	}{
		"a port is set":         {"127.0.0.1", 6443, "a free port", "the control plane starts, with its data in /hub, at 127.0.0.1:6443\n"},
		"an address of IPv6":    {"::1", 6443, "a free port", "the control plane starts, with its data in /hub, at [::1]:6443\n"},
		"the port is to be any": {"127.0.0.1", 0, "a free port", "the control plane starts, with its data in /hub, at a free port of 127.0.0.1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, starting("the control plane", "/hub", tc.address, tc.port, tc.otherwise)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
