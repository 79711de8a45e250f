package controlplane_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

func newCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://10.0.0.1:6443", Region: "eu"},
	}
}

func TestClusterIsCompletedAndCounted(t *testing.T) {
	hub := shared.Env(t).Hub
	cluster := newCluster("counted")
	cluster.Spec.Zone = "a"
	cluster.Status.KubernetesVersion = "v0.0.0" // not for the creator to say
	remove(t, hub, cluster)
	if err := hub.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Generation != 1 || cluster.Status.KubernetesVersion != "" || len(cluster.Spec.ResourceModels) != 9 ||
		cluster.Spec.Zone != "" || len(cluster.Spec.Zones) != 1 {
		t.Errorf("after creation: %s", encode(t, cluster))
	}

	cluster.Status.KubernetesVersion = "v1.36.4"
	cluster.Spec.Region = "ignored by a write to the status"
	if err := hub.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Generation != 1 || cluster.Status.KubernetesVersion != "v1.36.4" || cluster.Spec.Region != "eu" {
		t.Errorf("after a write to the status: %s", encode(t, cluster))
	}

	cluster.Spec.Region = "us"
	cluster.Status.KubernetesVersion = "ignored by a write to the spec"
	if err := hub.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Generation != 2 || cluster.Status.KubernetesVersion != "v1.36.4" || cluster.Spec.Region != "us" {
		t.Errorf("after a write to the spec: %s", encode(t, cluster))
	}

	cluster.ResourceVersion = "" // unconditional
	cluster.Labels = map[string]string{"a": "b"}
	if err := hub.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Generation != 2 {
		t.Errorf("a label made generation %d", cluster.Generation)
	}
}

func TestClusterIsRefused(t *testing.T) {
	hub := shared.Env(t).Hub
	cases := map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		want   string
	}{
		"without a mode":         {func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = "" }, "spec.syncMode: "},
		"with a bad name":        {func(c *clusterv1alpha1.Cluster) { c.Name = "a.b" }, "metadata.name: Invalid value"},
		"with too long a name":   {func(c *clusterv1alpha1.Cluster) { c.Name = strings.Repeat("a", 49) }, "metadata.name: Too long"},
		"with a zone twice over": {func(c *clusterv1alpha1.Cluster) { c.Spec.Zone, c.Spec.Zones = "a", []string{"b"} }, "spec.zone: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster("refused")
			tc.change(cluster)
			err := hub.Create(t.Context(), cluster)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestClusterIsApplied(t *testing.T) {
	env := shared.Env(t)
	const manifest = `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: applied}
spec: {syncMode: Pull, provider: acme}
`
	cluster := object(t, manifest)
	remove(t, env.Hub, cluster)
	apply := func() {
		t.Helper()
		if err := env.Hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(cluster), client.FieldOwner("a")); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	before := cluster.GetResourceVersion()
	cluster = object(t, manifest)
	apply()
	if got := cluster.GetResourceVersion(); got != before {
		t.Errorf("the same apply again made version %s of %s", got, before)
	}
	conflict := object(t, strings.ReplaceAll(manifest, "acme", "rival"))
	err := env.Hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(conflict), client.FieldOwner("b"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.provider") {
		t.Errorf("a second owner of a field: %v", err)
	}
	status := object(t, `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: applied}
status: {kubernetesVersion: v1.36.4}
`)
	if err := env.Hub.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("c")); err != nil {
		t.Errorf("apply to the status: %v", err)
	}
	got := &clusterv1alpha1.Cluster{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: "applied"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Status.KubernetesVersion != "v1.36.4" || got.Spec.Provider != "acme" || len(got.Spec.ResourceModels) != 9 {
		t.Errorf("applied cluster: %s", encode(t, got))
	}
	dry := object(t, manifest)
	dry.SetName("dry")
	if err := env.Hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(dry), client.FieldOwner("a"), client.DryRunAll); err != nil {
		t.Error(err)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: "dry"}, got); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run left something: %v", err)
	}
}

func TestClusterIsPatchedAndWatched(t *testing.T) {
	env := shared.Env(t)
	hub, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := hub.Watch(t.Context(), &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": "watched"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	cluster := newCluster("watched")
	if err := hub.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := hub.Patch(t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"region":"us"}}`))); err != nil {
		t.Fatal(err)
	}
	if err := hub.Patch(t.Context(), cluster, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/metadata/generation","value":2},{"op":"add","path":"/spec/provider","value":"acme"}]`))); err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 4 {
		event, ok := <-events.ResultChan()
		if !ok {
			t.Fatal("the watch ended")
		}
		c := event.Object.(*clusterv1alpha1.Cluster)
		got = append(got, fmt.Sprintf("%s %s/%s", event.Type, c.Spec.Provider, c.Spec.Region))
	}
	want := []string{string(watch.Added) + " /eu", string(watch.Modified) + " /us", string(watch.Modified) + " acme/us", string(watch.Deleted) + " acme/us"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestClusterTable(t *testing.T) {
	env := shared.Env(t)
	for _, name := range []string{"table-1", "table-2"} {
		cluster := newCluster(name)
		cluster.Labels = map[string]string{"table": "yes"}
		remove(t, env.Hub, cluster)
		if err := env.Hub.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if name == "table-1" {
			cluster.Status.KubernetesVersion = "v1.36.4"
			meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"})
			if err := env.Hub.Status().Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "clusters.txt", show(t, env.Config, "/apis/cluster.karmada.io/v1alpha1/clusters?labelSelector=table%3Dyes"))
}

// show prints what kubectl would with -o wide, but for ages.
func show(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	content, err := hub.RESTClient().Get().RequestURI(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(content, table); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	var header []string
	for _, column := range table.ColumnDefinitions {
		name := strings.ToUpper(column.Name)
		if column.Priority > 0 {
			name = "(" + name + ")"
		}
		header = append(header, name)
	}
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		var cells []string
		for i, cell := range row.Cells {
			if strings.EqualFold(table.ColumnDefinitions[i].Name, "age") {
				cell = "AGE"
			}
			cells = append(cells, fmt.Sprint(cell))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	w.Flush()
	return out.String()
}
