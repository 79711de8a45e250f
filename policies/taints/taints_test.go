package taints_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/taints"
)

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	morning = metav1.NewTime(noon.Add(-4 * time.Hour))
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// policy is one that was made so many minutes after the morning.
func policy(t *testing.T, name string, minute int, spec string) policyv1alpha1.ClusterTaintPolicy {
	t.Helper()
	return policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(morning.Add(time.Duration(minute) * time.Minute))},
		Spec:       *decode[policyv1alpha1.ClusterTaintPolicySpec](t, spec),
	}
}

// cluster has the conditions Ready True, Network False and Storage Unknown.
func cluster(current ...corev1.Taint) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{"tier": "gold"}}}
	c.Spec.Taints = current
	c.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue},
		{Type: "Network", Status: metav1.ConditionFalse},
		{Type: "Storage", Status: metav1.ConditionUnknown},
	}
	return c
}

func texts(list []corev1.Taint) []string {
	out := make([]string, 0, len(list))
	for _, t := range list {
		text := t.ToString()
		if t.TimeAdded != nil {
			text += " " + t.TimeAdded.UTC().Format("15:04")
		}
		out = append(out, text)
	}
	return out
}

const (
	down     = "[{conditionType: Network, operator: In, statusValues: ['False', Unknown]}]"
	up       = "[{conditionType: Network, operator: In, statusValues: ['True']}]"
	offline  = "{key: offline, effect: NoExecute}"
	offlines = "taints: [" + offline + "]"
)

func TestTaintsOfOnePolicy(t *testing.T) {
	old := corev1.Taint{Key: "offline", Effect: corev1.TaintEffectNoExecute, Value: "mine", TimeAdded: &morning}
	other := corev1.Taint{Key: "offline", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		spec    string
		current []corev1.Taint
		want    []string
		says    string
	}{
		"conditions that hold add the taints, dated now": {
			spec: "{addOnConditions: " + down + ", taints: [{key: a, value: x, effect: NoSchedule}, {key: b, effect: NoExecute}]}",
			want: []string{"a=x:NoSchedule 12:00", "b:NoExecute 12:00"}, says: "added a=x:NoSchedule, b:NoExecute",
		},
		"conditions that do not hold add nothing":   {spec: "{addOnConditions: " + up + ", " + offlines + "}"},
		"no conditions add nothing":                 {spec: "{" + offlines + "}"},
		"an empty list of conditions adds nothing":  {spec: "{addOnConditions: [], " + offlines + "}"},
		"no conditions remove nothing":              {spec: "{addOnConditions: [], removeOnConditions: [], " + offlines + "}", current: []corev1.Taint{old}, want: []string{"offline=mine:NoExecute 08:00"}},
		"a condition that is not there holds never": {spec: "{addOnConditions: [{conditionType: Disk, operator: NotIn, statusValues: ['True']}], " + offlines + "}"},
		"NotIn wants another status":                {spec: "{addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ['True']}], " + offlines + "}"},
		"NotIn takes any other status": {
			spec: "{addOnConditions: [{conditionType: Storage, operator: NotIn, statusValues: ['True', 'False']}], " + offlines + "}",
			want: []string{"offline:NoExecute 12:00"}, says: "added offline:NoExecute",
		},
		"an operator that there is not holds never": {spec: "{addOnConditions: [{conditionType: Ready, operator: Exists, statusValues: ['True']}], " + offlines + "}"},
		"all conditions must hold":                  {spec: "{addOnConditions: [{conditionType: Network, operator: In, statusValues: ['False']}, {conditionType: Ready, operator: In, statusValues: ['False']}], " + offlines + "}"},
		"two conditions that hold": {
			spec: "{addOnConditions: [{conditionType: Network, operator: In, statusValues: ['False']}, {conditionType: Ready, operator: In, statusValues: ['True']}], " + offlines + "}",
			want: []string{"offline:NoExecute 12:00"}, says: "added offline:NoExecute",
		},
		"a taint that is there keeps its value and time": {
			spec:    "{addOnConditions: " + down + ", taints: [{key: offline, value: theirs, effect: NoExecute}]}",
			current: []corev1.Taint{old}, want: []string{"offline=mine:NoExecute 08:00"},
		},
		"another effect is another taint": {
			spec: "{addOnConditions: " + down + ", " + offlines + "}", current: []corev1.Taint{other},
			want: []string{"offline:NoSchedule", "offline:NoExecute 12:00"}, says: "added offline:NoExecute",
		},
		"what is removed goes by key and effect": {
			spec: "{removeOnConditions: " + down + ", " + offlines + "}", current: []corev1.Taint{other, old},
			want: []string{"offline:NoSchedule"}, says: "removed offline=mine:NoExecute",
		},
		"what is added and removed at once is not there": {spec: "{addOnConditions: " + down + ", removeOnConditions: " + down + ", " + offlines + "}"},
		"a cluster that is named":                        {spec: "{targetClusters: {clusterNames: [eu-1]}, addOnConditions: " + down + ", " + offlines + "}", want: []string{"offline:NoExecute 12:00"}, says: "added offline:NoExecute"},
		"a cluster that is found by a label":             {spec: "{targetClusters: {labelSelector: {matchLabels: {tier: gold}}}, addOnConditions: " + down + ", " + offlines + "}", want: []string{"offline:NoExecute 12:00"}, says: "added offline:NoExecute"},
		"a cluster that is not meant":                    {spec: "{targetClusters: {exclude: [eu-1]}, addOnConditions: " + down + ", " + offlines + "}"},
		"what no cluster takes holds nothing else up": {
			spec: "{addOnConditions: " + down + ", taints: [{key: a, effect: PreferNoSchedule}, {key: no such key, effect: NoSchedule}, {key: b, value: no such value, effect: NoSchedule}, {key: c, effect: NoSchedule}]}",
			want: []string{"c:NoSchedule 12:00"}, says: "added c:NoSchedule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := taints.Decide([]policyv1alpha1.ClusterTaintPolicy{policy(t, "p", 0, tc.spec)}, cluster(tc.current...), noon)
			if tc.want == nil {
				tc.want = []string{}
			}
			if diff := cmp.Diff(tc.want, texts(got.Taints)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.says, got.String()); diff != "" || got.Changed() != (tc.says != "") {
				t.Errorf("changed: %t (-want +got):\n%s", got.Changed(), diff)
			}
		})
	}
}

func TestTaintsOfSeveralPolicies(t *testing.T) {
	adds := func(taint string) string { return "{addOnConditions: " + down + ", taints: [" + taint + "]}" }
	removes := func(taint string) string { return "{removeOnConditions: " + down + ", taints: [" + taint + "]}" }
	mine := corev1.Taint{Key: "offline", Effect: corev1.TaintEffectNoExecute, Value: "mine", TimeAdded: &morning}
	for name, tc := range map[string]struct {
		policies []policyv1alpha1.ClusterTaintPolicy
		current  []corev1.Taint
		want     []string
		says     string
	}{
		"no policy takes off what one has put on": {current: []corev1.Taint{mine}, want: []string{"offline=mine:NoExecute 08:00"}},
		"the oldest comes first, and its value counts": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 2, adds("{key: k, value: new, effect: NoSchedule}")), policy(t, "b", 1, adds("{key: k, value: old, effect: NoSchedule}, {key: first, effect: NoSchedule}"))},
			want:     []string{"k=old:NoSchedule 12:00", "first:NoSchedule 12:00"}, says: "added k=old:NoSchedule, first:NoSchedule",
		},
		"names decide among policies of one age": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "b", 1, adds("{key: b, effect: NoSchedule}")), policy(t, "a", 1, adds("{key: a, effect: NoSchedule}"))},
			want:     []string{"a:NoSchedule 12:00", "b:NoSchedule 12:00"}, says: "added a:NoSchedule, b:NoSchedule",
		},
		"a later policy removes what an earlier one adds": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 1, adds(offline)), policy(t, "b", 2, removes(offline))},
			want:     []string{},
		},
		"a later policy adds what an earlier one removes": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 1, removes(offline)), policy(t, "b", 2, adds(offline))},
			want:     []string{"offline:NoExecute 12:00"}, says: "added offline:NoExecute",
		},
		"what is removed and added again has been there all the time": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 1, removes(offline)), policy(t, "b", 2, adds(offline))},
			current:  []corev1.Taint{mine}, want: []string{"offline=mine:NoExecute 08:00"},
		},
		"what is added, removed and added has the last value": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 1, adds("{key: k, value: one, effect: NoSchedule}")), policy(t, "b", 2, removes("{key: k, effect: NoSchedule}")), policy(t, "c", 3, adds("{key: l, effect: NoSchedule}, {key: k, value: two, effect: NoSchedule}"))},
			want:     []string{"l:NoSchedule 12:00", "k=two:NoSchedule 12:00"}, says: "added l:NoSchedule, k=two:NoSchedule",
		},
		"one adds and another removes": {
			policies: []policyv1alpha1.ClusterTaintPolicy{policy(t, "a", 1, adds("{key: k, effect: NoSchedule}")), policy(t, "b", 2, removes(offline))},
			current:  []corev1.Taint{mine}, want: []string{"k:NoSchedule 12:00"}, says: "added k:NoSchedule; removed offline=mine:NoExecute",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := taints.Decide(tc.policies, cluster(tc.current...), noon)
			if diff := cmp.Diff(tc.want, texts(got.Taints)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.says, got.String()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the policies are: the order in which they are listed counts for nothing, what
// goes in stays as it is, and a second look changes nothing.
func TestDecisionsAreStable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := []string{"a", "b", "c"}
	effects := []string{"NoSchedule", "NoExecute"}
	for range 500 {
		var policies []policyv1alpha1.ClusterTaintPolicy
		for i := range 1 + random.IntN(5) {
			spec := "taints: [{key: " + keys[random.IntN(3)] + ", effect: " + effects[random.IntN(2)] + "}]\n"
			spec += "addOnConditions: " + []string{up, down}[random.IntN(2)] + "\nremoveOnConditions: " + []string{up, down}[random.IntN(2)] + "\n"
			policies = append(policies, policy(t, string(rune('p'+i)), random.IntN(2), spec))
		}
		is := cluster(corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &morning}, corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoSchedule})
		before := is.DeepCopy()
		first := taints.Decide(policies, is, noon)
		if diff := cmp.Diff(before, is); diff != "" {
			t.Fatalf("the cluster has changed (-before +after):\n%s", diff)
		}
		listed := slices.Clone(policies)
		random.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
		names := func() (out []string) {
			for i := range listed {
				out = append(out, listed[i].Name)
			}
			return out
		}
		order := names()
		if diff := cmp.Diff(first, taints.Decide(listed, is, noon)); diff != "" {
			t.Fatalf("another order (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(order, names()); diff != "" {
			t.Fatalf("the list of policies has changed (-before +after):\n%s", diff)
		}
		again := taints.Decide(policies, cluster(first.Taints...), noon.Add(time.Hour))
		if diff := cmp.Diff(first.Taints, again.Taints); diff != "" || again.Changed() {
			t.Fatalf("a second look (-want +got):\n%s", diff)
		}
	}
}
