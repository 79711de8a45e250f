package fleet_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
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
		ready int  // of /readyz; 0: that is not served
		asks  bool // the command talks to the server
		fails error
		want  string
	}{
		"another cluster":                   {http.StatusNotFound, http.StatusOK, true, failed, "SERVER is no control plane of a fleet, but another Kubernetes API: --kubeconfig or $KUBECONFIG names the file that leads to the control plane"},
		"another API":                       {http.StatusNotFound, 0, true, failed, "SERVER is no control plane of a fleet, but another Kubernetes API: --kubeconfig or $KUBECONFIG names the file that leads to the control plane"},
		"one that is starting":              {http.StatusNotFound, http.StatusInternalServerError, true, failed, "SERVER is not ready, and serves no clusters so far, as a control plane that is starting: try again in some seconds"},
		"another cluster, and all is well":  {http.StatusNotFound, http.StatusOK, true, nil, ""},
		"another cluster that is not asked": {http.StatusNotFound, http.StatusOK, false, failed, failed.Error()},
		"a control plane":                   {http.StatusOK, http.StatusOK, true, failed, failed.Error()},
		"one that does not let us see":      {http.StatusForbidden, http.StatusOK, true, failed, failed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/apis/cluster.karmada.io/v1alpha1":
					w.WriteHeader(tc.code)
				case "/readyz":
					w.WriteHeader(cmp.Or(tc.ready, http.StatusNotFound))
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
			want = strings.Replace(want, "SERVER", server.URL, 1)
			if got != want {
				t.Errorf("it says\n%s\nwant\n%s", got, want)
			}
		})
	}
}
