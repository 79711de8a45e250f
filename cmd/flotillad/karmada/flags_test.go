package karmada

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/config"
	electionoptions "k8s.io/component-base/config/options"
	"k8s.io/component-base/logs"
)

// program is a program with two flags of its own.
func program(t *testing.T) (*pflag.FlagSet, func() []string) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("data-dir", "", "")
	flags.Duration("cluster-status-update-frequency", 0, "")
	return flags, Add(flags)
}

func TestFlagsOfKarmada(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		want []string
		err  string
	}{
		"one of the program's own":    {args: "--cluster-status-update-frequency=3s"},
		"one without effect":          {args: "--kube-api-qps=40", want: []string{"--kube-api-qps (requests of the loops are not throttled by themselves)"}},
		"a switch without a value":    {args: "--disable-search", want: []string{"--disable-search (until search is built)"}},
		"several, sorted":             {args: "--resync-period=1h --cluster-monitor-period=5s", want: []string{"--cluster-monitor-period (a silence is noticed when it is long enough, without a period)", "--resync-period (what is watched is not read again)"}},
		"a value of another type":     {args: "--kube-api-burst=many", err: `invalid argument "many" for "--kube-api-burst" flag: strconv.ParseInt: parsing "many": invalid syntax`},
		"one that is refused":         {args: "--report-secrets=None", err: `invalid argument "None" for "--report-secrets" flag: it is a flag of the agent: use flotilla-agent`},
		"one of another command":      {args: "--server-port=1", err: `invalid argument "1" for "--server-port" flag: it is a flag of flotillad estimator`},
		"one that only serve has":     {args: "--secure-port=1", err: `invalid argument "1" for "--secure-port" flag: it is a flag of flotillad serve`},
		"one that nobody has":         {args: "--teleport=true", err: "unknown flag: --teleport"},
		"what would protect less":     {args: "--audit-log-path=/var/log/audit.log", err: `invalid argument "/var/log/audit.log" for "--audit-log-path" flag: the control plane writes no audit log`},
		"a duration that is a number": {args: "--resync-period=600", err: `invalid argument "600" for "--resync-period" flag: time: missing unit in duration "600"`},
		"a list":                      {args: "--watch-cache-sizes=a#1,b#2", want: []string{"--watch-cache-sizes (the API server's limits are fixed here)"}},
	} {
		t.Run(name, func(t *testing.T) {
			flags, unused := program(t)
			err := flags.Parse(strings.Fields(tc.args))
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, unused()); diff != "" {
				t.Errorf("without effect (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHelpStaysReadable: none of Karmada's is listed.
func TestHelpStaysReadable(t *testing.T) {
	flags, _ := program(t)
	flags.VisitAll(func(f *pflag.Flag) {
		if own := f.Name == "data-dir" || f.Name == "cluster-status-update-frequency"; f.Hidden == own {
			t.Errorf("--%s: hidden %v", f.Name, f.Hidden)
		}
	})
}

// TestTheTable: each name is there once, and says what becomes of it.
func TestTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range all() {
		if seen[f.Name] {
			t.Errorf("--%s is there twice", f.Name)
		}
		seen[f.Name] = true
		if f.Here == "" || len(f.Of) == 0 || strings.Contains(f.Here, "|") {
			t.Errorf("--%s: of %v, %q", f.Name, f.Of, f.Here)
		}
		if f.effect != works && f.kind == "" && f.oneOf == nil {
			t.Errorf("--%s: nothing says what its values are", f.Name)
		}
	}
}

// TestKubernetesOwn: what Karmada's components have from Kubernetes' libraries is known.
func TestKubernetesOwn(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.NewRecommendedOptions("/registry", nil).AddFlags(flags)
	options.NewServerRunOptions().AddUniversalFlags(flags)
	electionoptions.BindLeaderElectionFlags(&config.LeaderElectionConfiguration{}, flags)
	logs.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(all(), func(known Flag) bool { return known.Name == f.Name }) {
			t.Errorf("--%s (%s) is not known", f.Name, f.Value.Type())
		}
	})
}
