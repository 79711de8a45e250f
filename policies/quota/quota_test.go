package quota_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/quota"
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// texts shows amounts.
func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func TestUsage(t *testing.T) {
	const needs = "replicaRequirements: {resourceRequest: {cpu: 500m, memory: 1Gi}}\n"
	const parts = `components:
- {name: leader, replicas: 1, replicaRequirements: {resourceRequest: {cpu: '1'}}}
- {name: worker, replicas: 3, replicaRequirements: {resourceRequest: {cpu: 500m, memory: 1Gi}}}
- {name: idle, replicas: 9}
`
	for name, tc := range map[string]struct {
		spec string
		want map[string]string
	}{
		"what is placed nowhere uses nothing":  {needs + "replicas: 3", map[string]string{}},
		"what requests nothing uses nothing":   {"replicas: 3\nclusters: [{name: a, replicas: 3}]", map[string]string{}},
		"replicas count where they are placed": {needs + "replicas: 9\nclusters: [{name: a, replicas: 2}, {name: b, replicas: 1}]", map[string]string{"cpu": "1500m", "memory": "3Gi"}},
		"what is on the move counts once, where it goes": {
			needs + "replicas: 3\nclusters: [{name: b, replicas: 3}]\ngracefulEvictionTasks: [{fromCluster: a, replicas: 3, purgeMode: Gracefully, reason: TaintUntolerated, producer: x}]",
			map[string]string{"cpu": "1500m", "memory": "3Gi"},
		},
		"a set that is on the move counts once, where it goes": {
			parts + "clusters: [{name: b}]\ngracefulEvictionTasks: [{fromCluster: a, purgeMode: Gracefully, reason: TaintUntolerated, producer: x}]",
			map[string]string{"cpu": "2500m", "memory": "3Gi"},
		},
		"components count as a set in each cluster": {parts + "clusters: [{name: a}, {name: b}]", map[string]string{"cpu": "5", "memory": "6Gi"}},
		"a set of 150m CPU and a fraction of a byte, as clients of Karmada ask for": {
			"components:\n- {name: a, replicas: 1, replicaRequirements: {resourceRequest: {cpu: 50m, memory: 50m}}}\n- {name: b, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 50m, memory: 75m}}}\nclusters: [{name: x}, {name: y}]",
			map[string]string{"cpu": "300m", "memory": "400m"},
		},
		"replicas below zero are none":                         {needs + "clusters: [{name: a, replicas: -2}, {name: b, replicas: 1}]", map[string]string{"cpu": "500m", "memory": "1Gi"}},
		"requests below zero give nothing back":                {"replicaRequirements: {resourceRequest: {cpu: '-1', memory: 1Gi}}\nclusters: [{name: a, replicas: 1}]", map[string]string{"memory": "1Gi"}},
		"a cluster that is there twice is counted as it reads": {needs + "clusters: [{name: a, replicas: 1}, {name: a, replicas: 1}]", map[string]string{"cpu": "1", "memory": "2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := quota.Usage(decode[workv1alpha2.ResourceBindingSpec](t, tc.spec))
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

// More than fits into a number is more than any limit.
func TestUsageIsNeverTooSmall(t *testing.T) {
	spec := decode[workv1alpha2.ResourceBindingSpec](t, "replicaRequirements: {resourceRequest: {memory: 8Ei}}")
	for range 4 {
		spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: "a", Replicas: math.MaxInt32})
	}
	most := resource.MustParse("9E")
	if got := quota.Usage(spec)[corev1.ResourceMemory]; got.Cmp(most) < 0 {
		t.Errorf("usage = %s, which is too small", got.String())
	}
}

func TestCheck(t *testing.T) {
	q := decode[policyv1alpha1.FederatedResourceQuota](t, "{metadata: {namespace: shop, name: team}, spec: {overall: {cpu: '10', memory: 4Gi}}}")
	for name, tc := range map[string]struct{ used, delta, want string }{
		"up to the limit is allowed":                 {"{cpu: '9'}", "{cpu: '1'}", ""},
		"a bit more is not":                          {"{cpu: '9'}", "{cpu: 1001m}", "FederatedResourceQuota shop/team is exceeded: cpu: 9 of 10 are used, 1001m more are asked for"},
		"all that is exceeded is named, in order":    {"{cpu: '9', memory: 4Gi}", "{memory: 1Gi, cpu: '2'}", "FederatedResourceQuota shop/team is exceeded: cpu: 9 of 10 are used, 2 more are asked for; memory: 4Gi of 4Gi are used, 1Gi more are asked for"},
		"what is not limited is free":                {"{}", "{nvidia.com/gpu: '100'}", ""},
		"what does not grow is allowed at any usage": {"{cpu: '20'}", "{memory: 1Gi, cpu: '0'}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := quota.Check(q, *decode[corev1.ResourceList](t, tc.used), *decode[corev1.ResourceList](t, tc.delta))
			var exceeded *quota.ExceededError
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("error = %v", err)
			case tc.want != "" && (!errors.As(err, &exceeded) || err.Error() != tc.want):
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

// TestNamesOfLimits: a limit on requests counts what Pods request, by whatever name it goes;
// what bindings do not say counts against nothing.
func TestNamesOfLimits(t *testing.T) {
	q := decode[policyv1alpha1.FederatedResourceQuota](t, `
metadata: {namespace: shop, name: team}
spec:
  overall: {requests.cpu: 10, memory: 4Gi, requests.memory: 2Gi, limits.cpu: 1, requests.storage: 1Gi, requests.nvidia.com/gpu: 1, pods: 1}
`)
	used := *decode[corev1.ResourceList](t, "{cpu: '9', memory: 1Gi, storage: 5Gi, nvidia.com/gpu: '1'}")
	want := map[string]string{
		"requests.cpu": "9", "memory": "1Gi", "requests.memory": "1Gi", "requests.nvidia.com/gpu": "1",
	}
	if diff := cmp.Diff(want, texts(quota.Of(q, used))); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
	const exceeded = "FederatedResourceQuota shop/team is exceeded: "
	for name, tc := range map[string]struct{ delta, want string }{
		"requests of a kind":            {"{cpu: '2'}", exceeded + "requests.cpu: 9 of 10 are used, 2 more are asked for"},
		"within the limit":              {"{cpu: '1'}", ""},
		"the smaller of both names":     {"{memory: 2Gi}", exceeded + "requests.memory: 1Gi of 2Gi are used, 2Gi more are asked for"},
		"what plugins offer":            {"{nvidia.com/gpu: '1'}", exceeded + "requests.nvidia.com/gpu: 1 of 1 are used, 1 more are asked for"},
		"what nothing counts against":   {"{storage: 9Gi}", ""},
		"what no limit is on by a name": {"{ephemeral-storage: 9Gi}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			delta := *decode[corev1.ResourceList](t, tc.delta)
			got := ""
			if err := quota.Check(q, used, delta); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if tc.want != "" && !quota.Concerns(q, delta) {
				t.Error("the quota is not concerned")
			}
		})
	}
	if quota.Concerns(q, *decode[corev1.ResourceList](t, "{storage: 9Gi}")) {
		t.Error("the quota is concerned by what it does not count")
	}
}

func TestArithmetic(t *testing.T) {
	a, b := *decode[corev1.ResourceList](t, "{cpu: '1', memory: 2Gi}"), *decode[corev1.ResourceList](t, "{cpu: '3', pods: '1'}")
	for name, tc := range map[string]struct {
		got  corev1.ResourceList
		want map[string]string
	}{
		"growth is what is more":           {quota.Growth(a, b), map[string]string{"cpu": "2", "pods": "1"}},
		"nothing grows from more to less":  {quota.Growth(b, *decode[corev1.ResourceList](t, "{cpu: '1'}")), map[string]string{}},
		"the most is the larger of each":   {quota.Most(a, b), map[string]string{"cpu": "3", "memory": "2Gi", "pods": "1"}},
		"a quota shows what it limits":     {quota.Of(&policyv1alpha1.FederatedResourceQuota{Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: *decode[corev1.ResourceList](t, "{cpu: '9', secrets: '1'}")}}, a), map[string]string{"cpu": "1"}},
		"not what nothing is used of":      {quota.Of(&policyv1alpha1.FederatedResourceQuota{Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: *decode[corev1.ResourceList](t, "{cpu: '9', pods: '1'}")}}, *decode[corev1.ResourceList](t, "{cpu: '0'}")), map[string]string{}},
		"the arguments are left as it was": {a, map[string]string{"cpu": "1", "memory": "2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(tc.got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCounted: what bindings say is what each Pod requests; the number of objects, and what volumes ask for, they do not.
func TestCounted(t *testing.T) {
	for limit, want := range map[corev1.ResourceName]corev1.ResourceName{
		"cpu": "cpu", "requests.cpu": "cpu", "memory": "memory", "requests.ephemeral-storage": "ephemeral-storage", "nvidia.com/gpu": "nvidia.com/gpu",
		"requests.nvidia.com/gpu": "nvidia.com/gpu", "requests.hugepages-2Mi": "hugepages-2Mi",
		"limits.cpu": "", "requests.storage": "", "storage": "", "pods": "", "services.loadbalancers": "", "persistentvolumeclaims": "", "configmaps": "",
		"count/pods": "", "count/deployments.apps": "", "gold.storageclass.storage.k8s.io/requests.storage": "", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "",
	} {
		if got, counts := quota.Counted(limit); got != want || counts != (want != "") {
			t.Errorf("%s counts what is requested as %q (%t), want %q", limit, got, counts, want)
		}
	}
}
