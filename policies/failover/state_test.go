package failover_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// stateful returns a binding whose policy wants values of a status preserved as
// labels, with the status that a cluster reported.
func stateful(status string, rules ...policyv1alpha1.StatePreservationRule) *workv1alpha2.ResourceBinding {
	state := &policyv1alpha1.StatePreservation{Rules: rules}
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{
		Cluster:     &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly, StatePreservation: state},
		Application: &policyv1alpha1.ApplicationFailoverBehavior{StatePreservation: &policyv1alpha1.StatePreservation{Rules: rules[:1]}},
	}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "b"}, {ClusterName: "a"}}
	if status != "" {
		b.Status.AggregatedStatus[1].Status = &runtime.RawExtension{Raw: []byte(status)}
	}
	return b
}

func TestState(t *testing.T) {
	job := policyv1alpha1.StatePreservationRule{AliasLabelName: "app.io/job", JSONPath: "{.jobStatus.id}"}
	count := policyv1alpha1.StatePreservationRule{AliasLabelName: "app.io/count", JSONPath: "{.replicas}"}
	const reported = `{"jobStatus":{"id":"7f3c"},"replicas":3}`
	for name, tc := range map[string]struct {
		b           *workv1alpha2.ResourceBinding
		earlier     map[string]string
		application bool
		want        map[string]string
		fails       string
	}{
		"a string and a number":                     {b: stateful(reported, job, count), want: map[string]string{"app.io/job": "7f3c", "app.io/count": "3"}},
		"another list for applications":             {b: stateful(reported, job, count), application: true, want: map[string]string{"app.io/job": "7f3c"}},
		"a path that leads nowhere":                 {b: stateful(`{"replicas":3}`, job, count), fails: "{.jobStatus.id} of the status in a, for the label app.io/job: jobStatus is not found"},
		"nothing was reported":                      {b: stateful("", job), fails: "none was reported"},
		"the same, on the way from another cluster": {b: stateful("", job), earlier: map[string]string{"app.io/job": "1111"}, want: map[string]string{"app.io/job": "1111"}},
		"what is reported counts before that":       {b: stateful(reported, job), earlier: map[string]string{"app.io/job": "1111"}, want: map[string]string{"app.io/job": "7f3c"}},
		"a status that is none":                     {b: stateful("x", job), fails: "it cannot be read"},
		"a path that is none":                       {b: stateful(reported, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a["}), fails: "unterminated array"},
		"a value that no label can hold":            {b: stateful(`{"jobStatus":{"id":"s3://bucket/save point"}}`, job), fails: "the label app.io/job cannot hold what {.jobStatus.id} of the status in a is: "},
		"a policy that wants nothing":               {b: &workv1alpha2.ResourceBinding{}},
		"an empty value is one":                     {b: stateful(`{"jobStatus":{"id":""}}`, job), want: map[string]string{"app.io/job": ""}},
		"one of a list":                             {b: stateful(`{"a":[{"n":"x","v":1},{"n":"y","v":20000000000000001}]}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: `{.a[?(@.n=="y")].v}`}), want: map[string]string{"l": "20000000000000001"}},
		"an index":                                  {b: stateful(`{"a":[1,true]}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a[1]}"}), want: map[string]string{"l": "true"}},
		"an index that is not there":                {b: stateful(`{"a":[1]}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a[1]}"}), fails: "index out of bounds"},
		"nothing":                                   {b: stateful(`{"a":null}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a}"}), fails: "it leads to no single value"},
		"a whole object":                            {b: stateful(reported, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.jobStatus}"}), fails: "it leads to no single value"},
		"two of a list":                             {b: stateful(`{"a":[{"n":1},{"n":1}]}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a[?(@.n==1)].n}"}), fails: "it leads to no single value"},
		"all of a list":                             {b: stateful(`{"a":[1,2]}`, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: "{.a[*]}"}), fails: "a path is"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.earlier != nil {
				tc.b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "z", PreservedLabelState: tc.earlier}, {FromCluster: "y"}}
			}
			got, err := failover.State(tc.b, "a", tc.application)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("error %v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInherits(t *testing.T) {
	labels := map[string]string{"app.io/job": "7f3c"}
	task := func(mode policyv1alpha1.PurgeMode, before ...string) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{FromCluster: "a", PurgeMode: mode, PreservedLabelState: labels, ClustersBeforeFailover: before}
	}
	plain := workv1alpha2.GracefulEvictionTask{FromCluster: "c", PurgeMode: policyv1alpha1.PurgeModeGracefully}
	for name, tc := range map[string]struct {
		clusters []string
		tasks    []workv1alpha2.GracefulEvictionTask
		want     map[string]string
	}{
		"the new copy":                           {[]string{"b"}, []workv1alpha2.GracefulEvictionTask{plain, task(policyv1alpha1.PurgeModeDirectly, "a")}, labels},
		"nobody is left":                         {[]string{"b"}, nil, nil},
		"two copies run at once for a while":     {[]string{"b"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeGracefully, "a")}, nil},
		"another move came after":                {[]string{"b"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeDirectly, "a"), plain}, nil},
		"several clusters":                       {[]string{"b", "d"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeDirectly, "a")}, nil},
		"it was there before":                    {[]string{"b"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeDirectly, "a", "b")}, nil},
		"where only others need it":              {[]string{"d"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeDirectly, "a")}, nil},
		"of a cluster that failed, nobody names": {[]string{"b"}, []workv1alpha2.GracefulEvictionTask{task(policyv1alpha1.PurgeModeDirectly)}, labels},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: tc.tasks}
			for _, c := range tc.clusters {
				spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: c})
			}
			if diff := cmp.Diff(tc.want, failover.Inherits(spec, "b")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzState checks that, whatever a policy and a cluster contain, there is a
// result, and its values are valid labels.
func FuzzState(f *testing.F) {
	f.Add("{.a}", `{"a":"b"}`)
	f.Add("{range .a[*]}{.b}{end}", `{"a":[{"b":1}]}`)
	f.Add("{.a[?(@.b==1)].c}", `{"a":[{"b":1,"c":"d"}]}`)
	f.Fuzz(func(t *testing.T, path, status string) {
		got, err := failover.State(stateful(status, policyv1alpha1.StatePreservationRule{AliasLabelName: "l", JSONPath: path}), "a", false)
		if err == nil && len(got["l"]) > 63 {
			t.Errorf("%q of %q: %v", path, status, got)
		}
	})
}

// TestCheckPath checks that a path which costs more than the way to its value is
// refused before it is evaluated: anybody who may write a policy could stop the
// scheduler with it, or exhaust its memory.
func TestCheckPath(t *testing.T) {
	for _, path := range []string{"{.a}", "{.a.b[0].c}", "{$.a}", "{['a']}", `{.a[?(@.b=="c")].d}`, "{.a[-1]}"} {
		if err := failover.CheckPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	product := strings.Repeat(`{range "aaaaaaaaaa".*}`, 9) + `{"x"}` + strings.Repeat("{end}", 9)
	for _, path := range []string{
		"", "x", "{}", "x{.a}", "{.a}{.b}", `{"text"}`, "{.*}", "{..a}", "{.a[*]}", "{.a[0:3]}", "{.a[0,1]}", `{range "".*}{[0]}{end}`, product, "{.a[",
		`{.a[?(@.b[?(@.c=="d")].e=="f")].g}`, `{.a[?(@.b=="c")].d[?(@.e=="f")].g}`, `{.a[?(@..b=="c")].d}`, "{." + strings.Repeat("a", 300) + "}", strings.Repeat("@", 1<<20),
	} {
		if err := failover.CheckPath(path); err == nil {
			t.Errorf("%.60s is a path", path)
		}
	}
}
