package symptom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// workload is the object in a manifest.
func workload(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestPodsOf(t *testing.T) {
	const template = `template: {metadata: {labels: {app: web}}}`
	for name, tc := range map[string]struct {
		manifest string
		want     Selection
		none     bool
	}{
		"a Deployment":                {manifest: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, ` + template + `}}`, want: Selection{Labels: "app=web", name: "web", UID: "u", sets: true}},
		"with expressions":            {manifest: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [web, www]}]}, ` + template + `}}`, want: Selection{Labels: "app in (web,www)", name: "web", UID: "u"}},
		"another project's workload":  {manifest: `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, ` + template + `}}`, want: Selection{Labels: "app=web", name: "web", UID: "u", sets: true}},
		"one without a namespace":     {manifest: `{apiVersion: x.io/v1, kind: ClusterSet, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, ` + template + `}}`, none: true},
		"a Job":                       {manifest: `{apiVersion: batch/v1, kind: Job, metadata: {name: tidy}, spec: {` + template + `}}`, want: Selection{Labels: "job-name=tidy", name: "tidy", UID: "u"}},
		"a Pod":                       {manifest: `{apiVersion: v1, kind: Pod, metadata: {name: one}}`, want: Selection{Fields: "metadata.name=one", name: "one", UID: "u"}},
		"a selector of everything":    {manifest: `{apiVersion: x.io/v1, kind: Set, metadata: {name: web}, spec: {selector: {}, ` + template + `}}`, none: true},
		"one that is none":            {manifest: `{apiVersion: x.io/v1, kind: Set, metadata: {name: web}, spec: {selector: {matchExpressions: [{key: app, operator: Like}]}, ` + template + `}}`, none: true},
		"a text as a selector":        {manifest: `{apiVersion: x.io/v1, kind: Set, metadata: {name: web}, spec: {selector: app, ` + template + `}}`, none: true},
		"a Service has no Pods of it": {manifest: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}`, none: true},
		"a ConfigMap":                 {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := workload(t, tc.manifest)
			if of.GetKind() != "ClusterSet" {
				of.SetNamespace("shop")
			}
			got, ok := PodsOf(of, "u")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Selection{})); diff != "" || ok == tc.none {
				t.Errorf("found %t (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// TestWhosePodsTheyAre: a selector is text of a tenant's, and may fit Pods of others.
func TestWhosePodsTheyAre(t *testing.T) {
	pod := func(name, kind, owner, uid string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: "other", Controller: ptr.To(true)}}
		}
		if uid != "" {
			p.OwnerReferences[0].UID = "u"
		}
		return p
	}
	it := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "itself", UID: "u"}}
	all := []corev1.Pod{
		pod("of-its-replicaset", "ReplicaSet", "web-6f7d8", ""), pod("of-itself", "StatefulSet", "web", "u"), it,
		pod("of-another-deployment", "ReplicaSet", "web-api-6f7d8", ""), pod("of-another-set", "StatefulSet", "web", ""),
		pod("of-a-job", "Job", "web-1", ""), pod("of-nobody", "", "", ""),
	}
	for _, sets := range []bool{true, false} {
		want := []string{"of-itself", "itself"}
		if sets {
			want = []string{"of-its-replicaset", "of-itself", "itself"}
		}
		var got []string
		for _, p := range (Selection{name: "web", UID: "u", sets: sets}).Own(all) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of one that makes ReplicaSets: %t (-want +got):\n%s", sets, diff)
		}
	}
}

// TestOfWhichVersionTheyAre: while one version follows another, what Pods of the one before say is no matter of the latest.
func TestOfWhichVersionTheyAre(t *testing.T) {
	pod := func(name, label, hash string, created int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}}
		if label != "" {
			p.Labels = map[string]string{label: hash}
		}
		return p
	}
	const deployment, set = "pod-template-hash", "controller-revision-hash"
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"there are none":              {},
		"all are of one":              {[]*corev1.Pod{pod("a", deployment, "1", 10), pod("b", deployment, "1", 20)}, []string{"a", "b"}},
		"the latest is of the next":   {[]*corev1.Pod{pod("a", deployment, "1", 10), pod("b", deployment, "2", 20), pod("c", deployment, "1", 15), pod("d", deployment, "2", 12)}, []string{"b", "d"}},
		"so it is with a StatefulSet": {[]*corev1.Pod{pod("a", set, "1", 10), pod("b", set, "2", 20)}, []string{"b"}},
		"both are as old":             {[]*corev1.Pod{pod("a", set, "1", 20), pod("b", set, "2", 20)}, []string{"a", "b"}},
		"nobody says of which":        {[]*corev1.Pod{pod("a", "", "", 10), pod("b", "", "", 20)}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Latest(tc.pods) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
