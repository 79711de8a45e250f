package binding_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCarryDeployment follows one Deployment from its creation to its end and
// counts what the loops write for each step.
func TestCarryDeployment(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.create(f.policy("all", deployments("web")))
	f.awaitIdle()

	web := f.deployment("web")
	f.create(web)
	all := map[string]string{"a": "2x1", "b": "2x1", "c": "2x1"}
	eventually(f, "images", all, func() map[string]string { return f.images("web") })
	f.wrote("a new Deployment on three clusters", map[string]int{
		"PATCH deployments": 1, "POST resourcebindings": 1, "POST works": 3,
	})
	if diff := cmp.Diff(map[string]int{"Deployment ApplyPolicySucceed": 1, "Deployment ScheduleBindingSucceed": 1}, f.events.reasons()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	edit(f, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2" })
	eventually(f, "images", map[string]string{"a": "2x2", "b": "2x2", "c": "2x2"}, func() map[string]string { return f.images("web") })
	f.wrote("another image", map[string]int{"PATCH resourcebindings": 1, "PATCH works": 3})

	edit(f, web, func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	eventually(f, "images", map[string]string{"a": "5x2", "b": "5x2", "c": "5x2"}, func() map[string]string { return f.images("web") })
	f.wrote("other replicas", map[string]int{"PATCH resourcebindings": 1, "PATCH works": 3})

	f.stop()
	f.env.Emptied(t)
	before := f.env.QuietRevision(t)
	f.start()
	if after := f.env.QuietRevision(t); after != before {
		t.Errorf("a restart wrote to the store: revision %d, was %d", after, before)
	}
	edit(f, web, func(d *appsv1.Deployment) { *d.Spec.Replicas = 1 })
	eventually(f, "images", map[string]string{"a": "1x2", "b": "1x2", "c": "1x2"}, func() map[string]string { return f.images("web") })
	f.wrote("a restart and other replicas", map[string]int{"PATCH resourcebindings": 1, "PATCH works": 3})

	f.check(f.env.Hub.Delete(f.Context(), web))
	eventually(f, "works", map[string]string{}, func() map[string]string { return f.images("web") })
	eventually(f, "binding gone", true, func() bool { return f.binding("Deployment", "web") == nil })
	end := f.awaitIdle()
	maps.DeleteFunc(end, func(what string, _ int) bool { // the garbage collector may be first, and the binding be gone by then
		return strings.HasPrefix(what, "DELETE resourcebindings")
	})
	if diff := cmp.Diff(map[string]int{"DELETE works": 3, "PATCH resourcebindings": 1}, end); diff != "" {
		t.Errorf("writes for the end of the Deployment (-want +got):\n%s", diff)
	}
}

// TestStatusOfTemplate: a new status on the template, which the status
// loop writes often, costs no writes here, neither at once nor after a restart.
func TestStatusOfTemplate(t *testing.T) {
	f := newFleet(t, "a")
	web := f.deployment("web")
	f.create(f.policy("all", deployments("web")), web)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(web), web))
	web.Status.Replicas, web.Status.ReadyReplicas = 2, 2
	f.check(f.env.Hub.Status().Update(f.Context(), web))
	f.wrote("a status", map[string]int{})
	f.stop()
	f.start()
	f.wrote("a restart after a status", map[string]int{})
}

// TestContentPassesTheBinding: another image is written into the Works while
// the write of the binding, about which nothing is decided, is still under way.
func TestContentPassesTheBinding(t *testing.T) {
	f := newFleet(t, "a", "b")
	web := f.deployment("web")
	f.create(f.policy("all", deployments("web")), web)
	eventually(f, "images", map[string]string{"a": "2x1", "b": "2x1"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()
	before := f.binding("Deployment", "web").ResourceVersion

	release := f.traffic.hold("PATCH resourcebindings")
	defer release()
	edit(f, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2" })
	eventually(f, "images", map[string]string{"a": "2x2", "b": "2x2"}, func() map[string]string { return f.images("web") })
	if now := f.binding("Deployment", "web").ResourceVersion; now != before {
		t.Errorf("the binding was written, version %s, was %s", now, before)
	}
	release()
	eventually(f, "version that the binding is for", web.ResourceVersion, func() string {
		return f.binding("Deployment", "web").Spec.Resource.ResourceVersion
	})
	f.wrote("another image, in whatever order", map[string]int{"PATCH resourcebindings": 1, "PATCH works": 2})
}

// TestDecisionsWaitForTheBinding: a change about which something has to
// be decided is written into no Work before the binding has the decision. A second template,
// changed later, gets its Works meanwhile.
func TestDecisionsWaitForTheBinding(t *testing.T) {
	f := newFleet(t, "a")
	web, api := f.deployment("web"), f.deployment("api")
	f.create(f.policy("all", deployments("")), web, api)
	for _, name := range []string{"web", "api"} {
		eventually(f, "images of "+name, map[string]string{"a": "2x1"}, func() map[string]string { return f.images(name) })
	}
	f.awaitIdle()

	release := f.traffic.hold("PATCH resourcebindings")
	defer release()
	edit(f, web, func(d *appsv1.Deployment) {
		*d.Spec.Replicas = 5
		d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2"
	})
	edit(f, api, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/api:2" })
	eventually(f, "images of api", map[string]string{"a": "2x2"}, func() map[string]string { return f.images("api") })
	f.wrote("while no binding is written", map[string]int{"PATCH works": 1})
	if diff := cmp.Diff(map[string]string{"a": "2x1"}, f.images("web")); diff != "" {
		t.Errorf("images of web while its binding is not written (-want +got):\n%s", diff)
	}
	release()
	eventually(f, "images of web", map[string]string{"a": "5x2"}, func() map[string]string { return f.images("web") })
	f.wrote("both bindings, and the Works of web", map[string]int{"PATCH resourcebindings": 2, "PATCH works": 1})
}
