package program

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/cmd/flotillad/karmada"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// served are the options of serve with these arguments.
func served(t *testing.T, args ...string) (*serveOptions, error) {
	t.Helper()
	o, flags := &serveOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(append([]string{"--data-dir", "unused"}, args...)); err != nil {
		return o, err
	}
	return o, o.validate()
}

// TestTheFlagsThatWorkAreOurs: what the page says to work is a flag of serve's own.
func TestTheFlagsThatWorkAreOurs(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&serveOptions{}).addFlags(flags)
	for _, name := range karmada.Own() {
		if f := flags.Lookup(name); f == nil || f.Hidden {
			t.Errorf("--%s is not a flag of serve", name)
		}
	}
}

// TestTheEnvironmentOfKarmadasClients gives serve what Karmada's components get where
// its clients are tried.
func TestTheEnvironmentOfKarmadasClients(t *testing.T) {
	o, err := served(t, "--feature-gates=AllAlpha=true,AllBeta=true,Failover=true", "--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer,-workloadRebalancer",
		"--enable-no-execute-taint-eviction=true", "--allow-no-execute-taint-policy=true", "--enable-scheduler-estimator=true",
		"--scheduler-estimator-service-prefix=karmada-scheduler-estimator", "--scheduler-estimator-port=10352", "--scheduler-estimator-timeout=3s")
	if err != nil {
		t.Fatal(err)
	}
	var reported bytes.Buffer
	o.loops.warn(&reported)
	const want = "warning: without effect here: " +
		"--controllers=deploymentReplicasSyncer (not built yet: autoscaling), --controllers=hpaScaleTargetMarker (not built yet: autoscaling); " +
		"flotillad flags lists what is\n"
	if diff := cmp.Diff(want, reported.String()); diff != "" {
		t.Errorf("warning (-want +got):\n%s", diff)
	}
	if !o.plane.Rules.AllowNoExecuteTaintPolicy {
		t.Error("--allow-no-execute-taint-policy did nothing")
	}
	if o.loops.scheduling.Estimates.Remote == nil {
		t.Error("--enable-scheduler-estimator did nothing")
	}
	if !o.loops.scheduling.Failover.Taints {
		t.Error("--enable-no-execute-taint-eviction did nothing")
	}
}

func TestHowRevisionsAreApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want reconciler.Revisions
		err  string
	}{
		"as it is": {nil, reconciler.Revisions{Brake: &inventory.Brake{Share: 0.2, Count: 5}}, ""},
		"as it is set": {[]string{"--max-prune-share=0", "--max-prune-count=0", "--strict-variables", "--status-url=https://fleet.example.com/k"},
			reconciler.Revisions{Brake: &inventory.Brake{}, StrictVariables: true, StatusURL: "https://fleet.example.com/k"}, ""},
		"a share of per cents":       {[]string{"--max-prune-share=20"}, reconciler.Revisions{}, "--max-prune-share: 20 is not a part, from 0 to 1"},
		"no number":                  {[]string{"--max-prune-share=NaN"}, reconciler.Revisions{}, "--max-prune-share: NaN is not a part, from 0 to 1"},
		"less than none":             {[]string{"--max-prune-count=-1"}, reconciler.Revisions{}, "--max-prune-count: -1 is less than none"},
		"a port that is no address":  {[]string{"--receiver-address=9292"}, reconciler.Revisions{}, `--receiver-address: "9292" has no port, or is no address: write it such as :9292 or 127.0.0.1:9292`},
		"a host without a port":      {[]string{"--artifact-address=127.0.0.1"}, reconciler.Revisions{}, `--artifact-address: "127.0.0.1" has no port, or is no address`},
		"a link to nowhere":          {[]string{"--status-url=fleet.example.com"}, reconciler.Revisions{}, `--status-url: "fleet.example.com" is no address such as https://fleet.example.com/kustomizations`},
		"a link that shows a secret": {[]string{"--status-url=https://me:pass@example.com"}, reconciler.Revisions{}, "--status-url: everybody who sees"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := served(t, tc.args...)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("error = %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, o.loops.sources.revisions); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSetReachesTheLoops(t *testing.T) {
	o, err := served(t, "--cluster-status-update-frequency=3s", "--cluster-failure-threshold=7s", "--cluster-success-threshold=0s", "--enable-cluster-resource-modeling=false",
		"--concurrent-cluster-syncs=1", "--concurrent-work-syncs=2", "--concurrent-resourcebinding-syncs=3", "--concurrent-clusterresourcebinding-syncs=4",
		"--concurrent-namespace-syncs=5", "--concurrent-resource-template-syncs=6", "--concurrent-dependent-resource-syncs=7")
	if err != nil {
		t.Fatal(err)
	}
	want := reconciler.Tuning{
		Period: 3e9, FailureThreshold: 7e9, SuccessThreshold: 1, NoModels: true,
		Workers: reconciler.Workers{Clusters: 1, Works: 2, Bindings: 4, Namespaces: 5, Templates: 6, Dependents: 7},
	}
	if diff := cmp.Diff(want, o.loops.tuning.loops); diff != "" {
		t.Errorf("tuning (-want +got):\n%s", diff)
	}
	var reported bytes.Buffer
	if o.loops.warn(&reported); reported.Len() > 0 {
		t.Errorf("reported %q", reported.String())
	}
}

func TestNamespacesAreLimited(t *testing.T) {
	with := tenancy.DefaultLimits()
	with[tenancy.Objects], with[tenancy.ArtifactSize] = 7, 2<<30
	for name, tc := range map[string]struct {
		args []string
		want tenancy.Limits
	}{
		"as they are":     {nil, tenancy.DefaultLimits()},
		"as they are set": {[]string{"--namespace-limits=objects=7,artifact-size=2Gi"}, with},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := served(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			rules := o.loops.revisions().Tenancy
			if diff := cmp.Diff(tc.want, rules.In("team")); diff != "" {
				t.Errorf("a tenant's (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tenancy.Limits(nil), rules.In("flux-system")); diff != "" {
				t.Errorf("a privileged one's (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"--cluster-status-update-frequency=0s": "--cluster-status-update-frequency must be at least 1s",
		"--cluster-failure-threshold=-1s":      "--cluster-success-threshold and --cluster-failure-threshold must not be negative",
		"--namespace-limits=pods=3":            `--namespace-limits: "pods" is no limit: there are artifact-size, kustomizations, object-size, objects, sources`,
		"--reporting=everything":               `--reporting "everything" is unknown: use changes or karmada`,
		"--concurrent-work-syncs=-1":           "--concurrent-work-syncs -1 must be between 1 and 10000, or 0",
		"--controllers=*,-clusterStatus":       "--controllers: clusterStatus is a part of the loop cluster here",
		"--resource-eviction-rate=fast":        `invalid argument "fast" for "--resource-eviction-rate" flag`,
		"--kubeconfig=/etc/kubeconfig":         `"--kubeconfig" flag: serve is the control plane itself: flotillad controllers --kubeconfig runs the loops`,
	} {
		cmd := New(Options{})
		cmd.SetArgs([]string{"serve", "--data-dir", filepath.Join(t.TempDir(), "hub"), flag})
		var reported bytes.Buffer
		cmd.SetOut(io.Discard)
		cmd.SetErr(&reported)
		if code := command.Run(t.Context(), cmd); code != 2 || !strings.Contains(reported.String(), want) || strings.Count(reported.String(), "\n") != 1 {
			t.Errorf("%s ends with %d: %s", flag, code, reported.String())
		}
	}
}

// TestThePageIsFresh: make generate writes it.
func TestThePageIsFresh(t *testing.T) {
	var want bytes.Buffer
	if err := karmada.Page(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/flags.md is out of date, run make generate (-want +got):\n%s", diff)
	}
}

// TestProfilesAreAskedFor: they are served without a login, so not unless somebody asks for
// them, and then to this machine alone.
func TestProfilesAreAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nobody asks":              {nil, ""},
		"a place alone is no wish": {[]string{"--profiling-bind-address=0.0.0.0:6060"}, ""},
		"on this machine":          {[]string{"--enable-pprof"}, "127.0.0.1:6060"},
		"where others reach them":  {[]string{"--enable-pprof", "--profiling-bind-address=0.0.0.0:6060"}, "0.0.0.0:6060"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := served(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := o.loops.addresses.profiled(); got != tc.want {
				t.Errorf("profiles are served at %q, want %q", got, tc.want)
			}
		})
	}
}
