package inspection_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/inspection"
	"github.com/flotilla-io/flotilla/internal/command"
)

// stub is a control plane, with members behind it, that gives the answers of a
// table: for what no server of the tests can be brought to say. Keys are paths, with
// CLUSTER: before them for those of a member; the rest is not found.
func stub(t *testing.T, answers map[string]string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if cluster, rest, ok := strings.Cut(strings.TrimPrefix(path, "/apis/cluster.karmada.io/v1alpha1/clusters/"), "/proxy/"); ok {
			path = cluster + ":/" + rest
		}
		answer, ok := answers[path]
		w.Header().Set("Content-Type", "application/json")
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			parts := strings.Split(path, "/")
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"` + strings.Join(parts[max(0, len(parts)-2):], " ") +
				` not found","details":{"name":"` + parts[len(parts)-1] + `","kind":"` + parts[max(0, len(parts)-2)] + `"}}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// answer is the output of the command line, and its exit code.
type answer struct {
	Code     int
	Out, Err string
}

// ask runs a line of the command line against a control plane.
func ask(t *testing.T, address, line string) answer {
	t.Helper()
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	root.AddCommand(inspection.Commands(f)...)
	root.SetArgs(append(strings.Fields(line), "--server", address, "--cache-dir", t.TempDir()))
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := command.Run(t.Context(), root)
	return answer{code, out.String(), errOut.String()}
}
