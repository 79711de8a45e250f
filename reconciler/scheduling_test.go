package reconciler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

type plugin string

func (p plugin) Name() string { return string(p) }

func (plugin) Filter(*framework.Request, *framework.Cluster) string { return "" }

func TestPlugins(t *testing.T) {
	builtIn := (&Scheduling{}).PluginNames()
	without := func(names ...string) []string {
		var out []string
		for _, name := range builtIn {
			if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
				out = append(out, name)
			}
		}
		return out
	}
	own := []framework.Plugin{plugin("Quay")}
	cases := map[string]struct {
		s    Scheduling
		want []string
		err  string
	}{
		"all":                     {want: builtIn},
		"all, and an own one":     {s: Scheduling{Plugins: own, Enabled: []string{"*"}}, want: append(without(), "Quay")},
		"all but one":             {s: Scheduling{Enabled: []string{"*", "-ClusterLocality"}}, want: without("ClusterLocality")},
		"only two":                {s: Scheduling{Plugins: own, Enabled: []string{"Quay", "APIEnablement"}}, want: []string{"APIEnablement", "Quay"}},
		"none":                    {s: Scheduling{Enabled: []string{"-APIEnablement"}}, want: []string{}},
		"groups are switched off": {s: Scheduling{Off: Off{WorkloadAffinity: true}}, want: without("WorkloadAffinity", "WorkloadAntiAffinity")},
		"one that there is not":   {s: Scheduling{Enabled: []string{"*", "-Quay"}}, err: `there is no plugin "Quay": there are APIEnablement, `},
		"a name that is taken":    {s: Scheduling{Plugins: []framework.Plugin{plugin("APIEnablement")}}, err: `there are two plugins "APIEnablement"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			active, err := tc.s.plugins()
			if (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			got := []string{}
			for _, p := range active {
				got = append(got, p.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAny: a program without loops of its own leaves the lease to others.
func TestAny(t *testing.T) {
	for list, want := range map[string]bool{
		"": true, "*": true, "-*": false, "*,-scheduler": true, "-*,scheduler": true, "scheduler,-scheduler": false, "nonsense": false,
	} {
		if got := Any(strings.FieldsFunc(list, func(r rune) bool { return r == ',' })); got != want {
			t.Errorf("--controllers=%s: %t, want %t", list, got, want)
		}
	}
}

func TestControllers(t *testing.T) {
	if err := Check([]string{"*", "-rebalance"}); err != nil {
		t.Error(err)
	}
	if err := Check([]string{"rebalancer"}); err == nil || !strings.Contains(err.Error(), "rebalance,") {
		t.Errorf("a controller that there is not: %v", err)
	}
}
