package tenants

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restless are kinds that change by themselves.
var restless = []string{"Event", "Lease", "Node", "Cluster", "APIService", "ComponentStatus", "CSINode", "Pod", "EndpointSlice", "Endpoints", "IPAddress"}

// belongings are all objects that are not the tenant's, of the control plane and of the
// members, as text without what changes by itself.
func (w *world) belongings(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, obj := range w.everything(t) {
		if slices.Contains(restless, obj.GetKind()) || obj.GetNamespace() == tenant || obj.GetName() == tenant ||
			obj.GetKind() == "Namespace" || strings.HasPrefix(obj.GetNamespace(), "karmada-es-") && obj.GetKind() == "Work" && !strings.Contains(text(obj), "attack-") {
			continue
		}
		obj.SetResourceVersion("")
		obj.SetManagedFields(nil)
		delete(obj.Object, "status")
		out[key] = text(obj)
	}
	return out
}

func text(obj *unstructured.Unstructured) string {
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// everything lists all objects of the control plane and of the members by what they are.
func (w *world) everything(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	collect := func(side string, from client.Client, kinds []schema.GroupVersionKind) {
		for _, gvk := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			if err := from.List(t.Context(), list); err != nil {
				continue // a kind that cannot be listed has no objects
			}
			for i := range list.Items {
				obj := &list.Items[i]
				out[side+": "+gvk.GroupKind().String()+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj
			}
		}
	}
	collect("hub", w.hub, kindsOf(t, w.Hub.Config))
	for name, member := range w.members {
		collect(name, member, kindsOf(t, w.Members[name].Config))
	}
	return out
}

func kindsOf(t *testing.T, connect connection) []schema.GroupVersionKind {
	t.Helper()
	cfg, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []schema.GroupVersionKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				out = append(out, gv.WithKind(resource.Kind))
			}
		}
	}
	return out
}

// secret fails if what only others may read is to be seen anywhere else: in an object
// of the tenant's, in an Event, in a log, in what members hold of the tenant.
func (w *world) secret(t *testing.T, crown string) {
	t.Helper()
	for key, obj := range w.everything(t) {
		own := obj.GetNamespace() == tenant || obj.GetKind() == "Event" || !strings.HasPrefix(key, "hub: ")
		if own && (strings.Contains(text(obj), crown) || strings.Contains(text(obj), encoded(crown))) {
			t.Errorf("%s shows what is another's: %s", key, text(obj))
		}
	}
	log, err := os.ReadFile(w.Hub.Log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, crown) || strings.Contains(line, encoded(crown)) {
			t.Errorf("the log shows what is another's: %s", line)
		}
	}
}

// connection leads to a server.
type connection func() (*rest.Config, error)

// encoded is how a Secret shows a value; the end depends on what follows.
func encoded(value string) string {
	raw := base64.StdEncoding.EncodeToString([]byte(value))
	return raw[:len(raw)-4]
}
