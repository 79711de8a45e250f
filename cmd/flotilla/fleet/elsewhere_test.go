package fleet_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// TestElsewhere: a server that knows no clusters is named as what it is, whatever failed there.
func TestElsewhere(t *testing.T) {
	failed := errors.New("the control plane does not serve it")
	for name, tc := range map[string]struct {
		code  int  // of /apis/cluster.karmada.io/v1alpha1
		asks  bool // the command talks to the server
		fails error
		want  string
	}{
		"another cluster":                   {http.StatusNotFound, true, failed, "SERVER is no control plane of a fleet, but another Kubernetes API: --kubeconfig or $KUBECONFIG names the file that leads to the control plane"},
		"another cluster, and all is well":  {http.StatusNotFound, true, nil, ""},
		"another cluster that is not asked": {http.StatusNotFound, false, failed, failed.Error()},
		"a control plane":                   {http.StatusOK, true, failed, failed.Error()},
		"one that does not let us see":      {http.StatusForbidden, true, failed, failed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/apis/cluster.karmada.io/v1alpha1" {
					w.WriteHeader(tc.code)
				}
				_, _ = w.Write([]byte(`{}`))
			}))
			defer server.Close()
			f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, server.URL, "shop")}
			root := &cobra.Command{Use: "flotilla", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(&cobra.Command{Use: "ask", RunE: func(*cobra.Command, []string) error {
				if tc.asks {
					cfg, err := f.Factory().KubernetesClientSet()
					if err != nil {
						return err
					}
					if _, err := cfg.Discovery().ServerVersion(); err != nil {
						return err
					}
				}
				return tc.fails
			}})
			fleet.HeedElsewhere(f, root)
			root.SetArgs([]string{"ask"})
			got, want := "", tc.want
			if err := root.ExecuteContext(t.Context()); err != nil {
				got = err.Error()
			}
			if name == "another cluster" {
				want = server.URL + want[len("SERVER"):]
			}
			if got != want {
				t.Errorf("it says\n%s\nwant\n%s", got, want)
			}
		})
	}
}
