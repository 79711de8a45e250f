package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestDemo runs what the README's first command runs, to its end.
func TestDemo(t *testing.T) {
	t.Parallel() // it has a fleet of its own
	begin := time.Now()
	out, err := run(t.Context(), nil, "flotilla", "demo", "--exit", "--dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the demo took %s:\n%s", time.Since(begin).Round(time.Second), out)
	for _, want := range []string{"fetch", "apply", "place", "run", "report", "3/3 clusters ready"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
}

// TestWhatUsersSee prints what Karmada's users know, with its columns.
func TestWhatUsersSee(t *testing.T) {
	namespace := fleet.NameOf(t)
	the.Apply(t, fmt.Sprintf(byHand, namespace, "east, edge, west"))
	cases := map[string]struct {
		args []string
		want []string // regular expressions, one per line that must be there
	}{
		"clusters":       {[]string{"get", "clusters"}, []string{`NAME +VERSION +MODE +READY +AGE`, `east +v1\.\d+\.\d+ +Push +True +\S+`}},
		"clusters, wide": {[]string{"get", "clusters", "-o", "wide"}, []string{`NAME +VERSION +MODE +READY +AGE +ZONES +REGION +PROVIDER +API-ENDPOINT +PROXY-URL`}},
		"policies":       {[]string{"get", "pp", "-n", namespace}, []string{`NAME +CONFLICT-RESOLUTION +PRIORITY +AGE`, `web +Abort +0 +\S+`}},
		"bindings":       {[]string{"get", "rb", "-n", namespace}, []string{`NAME +SCHEDULED +FULLYAPPLIED +AGE`, `web-deployment +True +True +\S+`}},
		"works":          {[]string{"get", "work", "-n", "karmada-es-east"}, []string{`NAME +WORKLOAD-KIND +APPLIED +AGE`, `web-\S+ +Deployment +True +\S+`}},
		"templates":      {[]string{"get", "deploy", "-n", namespace}, []string{`NAME +READY +UP-TO-DATE +AVAILABLE +AGE`, `web +4/4 +4 +4 +\S+`}},
		"all at once":    {[]string{"get", "clusters,pp,cpp,op,rb,work", "-A"}, []string{`cluster\.cluster\.karmada\.io/east`, `propagationpolicy\.policy\.karmada\.io/web`, `overridepolicy\.policy\.karmada\.io/web`, `work\.work\.karmada\.io/web-\S+`}},
		"an explanation": {[]string{"explain", "propagationpolicy.spec.placement"}, []string{`clusterAffinity`, `replicaScheduling`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, want := range tc.want {
				pattern := regexp.MustCompile(`(?m)` + want)
				out := ""
				eventually(t, time.Minute, "kubectl "+strings.Join(tc.args, " ")+" shows "+want, func(_ context.Context) error {
					out = the.Kubectl(t, "", tc.args...)
					if !pattern.MatchString(out) {
						return fmt.Errorf("it shows:\n%s", out)
					}
					return nil
				})
			}
		})
	}
}

// TestWrongCalls ends with one clear line and a stable exit code.
func TestWrongCalls(t *testing.T) {
	member := the.Members["east"]
	hub := []string{"--kubeconfig", the.Hub.Kubeconfig}
	cases := map[string]struct {
		program string
		args    []string
		code    int
		says    string
	}{
		"an unknown command":               {"flotilla", []string{"jion"}, 2, `unknown command "jion"`},
		"an unknown flag":                  {"flotilla", []string{"join", "x", "--clutser-kubeconfig=f"}, 2, "--clutser-kubeconfig"},
		"a join without a name":            {"flotilla", []string{"join"}, 2, "NAME"},
		"a kubeconfig that is not there":   {"flotilla", []string{"join", "new", "--kubeconfig", "gone", "--cluster-kubeconfig", member.Kubeconfig}, 1, "gone"},
		"a context that is not there":      {"flotilla", append([]string{"join", "new", "--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", "gone"}, hub...), 1, `"gone"`},
		"a name that Kubernetes refuses":   {"flotilla", append([]string{"join", "New_One", "--cluster-kubeconfig", member.Kubeconfig}, hub...), 1, "New_One"},
		"a member that is joined already":  {"flotilla", append([]string{"join", "second", "--cluster-kubeconfig", member.Kubeconfig}, hub...), 1, "east"},
		"a cluster that nobody joined":     {"flotilla", append([]string{"unjoin", "gone"}, hub...), 1, "gone"},
		"a control plane without a folder": {"flotillad", []string{"serve"}, 2, "--data-dir"},
		"a folder that is in use":          {"flotillad", []string{"serve", "--data-dir", filepath.Join(the.Dir, "hub"), "--secure-port", "0"}, 1, filepath.Join(the.Dir, "hub")},
		"a member with a bad name":         {"flotillad", []string{"member", "--name", "Not_OK", "--data-dir", filepath.Join(the.Dir, "bad")}, 2, "Not_OK"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := run(t.Context(), nil, tc.program, tc.args...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tc.code {
				t.Errorf("want exit code %d: %v", tc.code, err)
			}
			if lines := strings.Count(strings.TrimSpace(out), "\n") + 1; lines != 1 || !strings.Contains(out, tc.says) {
				t.Errorf("want one line that names %s, got:\n%s", tc.says, out)
			}
		})
	}
}

// TestUnjoin takes a cluster out of the fleet and back in.
func TestUnjoin(t *testing.T) {
	hub := []string{"--kubeconfig", the.Hub.Kubeconfig}
	member := the.Members["edge"]
	if _, err := run(t.Context(), nil, "flotilla", append([]string{"unjoin", "edge", "--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", "edge"}, hub...)...); err != nil {
		t.Fatal(err)
	}
	if out := the.Kubectl(t, "", "get", "clusters"); strings.Contains(out, "edge") {
		t.Errorf("the cluster is still there:\n%s", out)
	}
	if _, err := run(t.Context(), nil, "flotilla", append([]string{"join", "edge", "--cluster-kubeconfig", member.Kubeconfig, "--cluster-context", "edge", "--cluster-region", regions["edge"]}, hub...)...); err != nil {
		t.Fatal(err)
	}
}
