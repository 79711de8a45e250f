package rules_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// asked is what an object requests.
type asked struct {
	Replicas int32
	Needs    *workv1alpha2.ReplicaRequirements
	Error    string
}

// TestReplicas checks that replicas are counted, and that a replica needs what its
// pod requires for scheduling, not what it only prefers.
func TestReplicas(t *testing.T) {
	terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "Exists"}}}}
	needs := func(claim *workv1alpha2.NodeClaim, request corev1.ResourceList) *workv1alpha2.ReplicaRequirements {
		return &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request, Namespace: "ns"}
	}
	cases := map[string]struct {
		// spec of the object, with the pod template in it.
		spec string
		want asked
	}{
		"pods that need nothing":   {`k: 3, template: {spec: {containers: [{name: a}]}}`, asked{Replicas: 3}},
		"no template":              {`k: 3`, asked{Replicas: 3}},
		"no number":                {`template: {}`, asked{}},
		"less than none":           {`k: -1`, asked{Error: "spec.k is no number of replicas: -1"}},
		"more than can be":         {`k: 2147483648`, asked{Error: "spec.k is no number of replicas: 2147483648"}},
		"as many as can be":        {`k: 2147483647`, asked{Replicas: math.MaxInt32}},
		"nodes by their labels":    {`k: 1, template: {spec: {nodeSelector: {disk: fast}}}`, asked{1, needs(&workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "fast"}}, nil), ""}},
		"nodes that are tolerated": {`k: 1, template: {spec: {tolerations: [{key: a, operator: Exists}]}}`, asked{1, needs(&workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Key: "a", Operator: "Exists"}}}, nil), ""}},
		"nodes that are required":  {`k: 1, template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}}`, asked{1, needs(&workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: terms}}, nil), ""}},
		"nodes that are preferred": {`k: 1, template: {spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}}`, asked{Replicas: 1}},
		"a requirement of no term": {`k: 1, template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}}`, asked{Replicas: 1}},
		"the sum of containers":    {`k: 1, template: {spec: {containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 500m, memory: 1Gi}}}]}}`, asked{1, needs(nil, corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}), ""}},
		"or more to begin with":    {`k: 1, template: {spec: {overhead: {cpu: 1}, initContainers: [{resources: {requests: {cpu: 4}}}], containers: [{resources: {requests: {cpu: 1}}}]}}`, asked{1, needs(nil, corev1.ResourceList{"cpu": resource.MustParse("5")}), ""}},
		"what they are limited to, where they ask for nothing": {`k: 1, template: {spec: {containers: [{resources: {limits: {cpu: 5, memory: 1Gi}}}, {resources: {requests: {cpu: 1}, limits: {cpu: 3, nvidia.com/gpu: 8}}}]}}`,
			asked{1, needs(nil, corev1.ResourceList{"cpu": resource.MustParse("6"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("8")}), ""}},
		"also to begin with":          {`k: 1, template: {spec: {initContainers: [{resources: {limits: {cpu: 7}}}], containers: [{resources: {requests: {cpu: 1}}}]}}`, asked{1, needs(nil, corev1.ResourceList{"cpu": resource.MustParse("7")}), ""}},
		"a limit that takes hours":    {`k: 1, template: {spec: {containers: [{resources: {limits: {cpu: "1e999999999"}}}]}}`, asked{1, nil, `pod spec: limits.cpu: "1e999999999" is no quantity`}},
		"a pod spec that is none":     {`k: 1, template: {spec: {containers: 7}}`, asked{1, nil, "pod spec: cannot restore slice from int64"}},
		"a quantity that takes hours": {`k: 1, template: {spec: {containers: [{resources: {requests: {cpu: "1e999999999"}}}]}}`, asked{1, nil, `pod spec: requests.cpu: "1e999999999" is no quantity`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, `{metadata: {namespace: ns}, spec: {`+tc.spec+`}}`)
			var got asked
			var err error
			if got.Replicas, got.Needs, err = rules.Replicas([]string{"spec", "k"}, []string{"spec", "template"})(obj); err != nil {
				got.Error = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			plain, none, err := rules.Replicas([]string{"spec", "k"}, nil)(obj)
			if plain != tc.want.Replicas || none != nil || (err != nil) != (tc.want.Replicas == 0 && tc.want.Error != "") {
				t.Errorf("without a template: %d, %v, %v", plain, none, err)
			}
		})
	}
}

// TestReviseAt checks that a number is changed in a copy, where there is one.
func TestReviseAt(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"a number":         {`{spec: {k: 1, other: 2}}`, `{spec: {k: 7, other: 2}}`},
		"none":             {`{spec: {other: 2}}`, `{spec: {other: 2}}`},
		"what is no count": {`{spec: {k: many}}`, `{spec: {k: 7}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := object(t, tc.in)
			out, err := rules.ReviseAt("spec", "k")(in, 7)
			if err != nil {
				t.Fatal(err)
			}
			want := []any{object(t, tc.want).Object, object(t, tc.in).Object}
			if diff := cmp.Diff(want, []any{out.Object, in.Object}); diff != "" {
				t.Errorf("revised, and before (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShare checks that a percentage is rounded up, and that a text that is none
// counts as zero.
func TestShare(t *testing.T) {
	cases := map[string]struct {
		v    any
		of   int64
		want int64
	}{
		"a number":               {int64(3), 10, 3},
		"half":                   {"50%", 10, 5},
		"rounded up":             {"1%", 10, 1},
		"all":                    {"100%", 7, 7},
		"nothing":                {"0%", 7, 0},
		"more than all":          {"101%", 7, 0},
		"less than nothing":      {"-1%", 7, 0},
		"no percentage":          {"half", 7, 0},
		"a number as a text":     {"3", 10, 0},
		"a sign without number":  {"%", 10, 0},
		"what is missing":        {nil, 7, 0},
		"of less than none":      {"50%", -8, 0},
		"of more than there are": {"100%", math.MaxInt64, math.MaxInt32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rules.Share(tc.v, tc.of); got != tc.want {
				t.Errorf("share = %d, want %d", got, tc.want)
			}
		})
	}
}

// TestProduct checks that a product with a number that is no valid number of pods
// is none either.
func TestProduct(t *testing.T) {
	cases := map[string]struct{ a, b, want int64 }{
		"two numbers":      {3, 4, 12},
		"none":             {0, 4, 0},
		"the most":         {math.MaxInt32, math.MaxInt32, math.MaxInt32 * math.MaxInt32},
		"less than none":   {-3, 4, -3},
		"twice":            {-3, -4, -4},
		"more than can be": {math.MaxInt32 + 1, 1, -1},
		"on either side":   {1, math.MaxInt64, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rules.Product(tc.a, tc.b); got != tc.want {
				t.Errorf("product = %d, want %d", got, tc.want)
			}
		})
	}
}
