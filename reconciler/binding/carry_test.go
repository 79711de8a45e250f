package binding_test

import (
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
	f.settle()

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
	f.wrote("the end of the Deployment", map[string]int{
		"DELETE resourcebindings": 1, "DELETE works": 3, "PATCH resourcebindings": 1,
	})
}

// TestStatusOfTemplate shows that a status on the template, which the status
// loop writes all the time, costs nothing here, neither at once nor on restart.
func TestStatusOfTemplate(t *testing.T) {
	f := newFleet(t, "a")
	web := f.deployment("web")
	f.create(f.policy("all", deployments("web")), web)
	eventually(f, "images", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("web") })
	f.settle()
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(web), web))
	web.Status.Replicas, web.Status.ReadyReplicas = 2, 2
	f.check(f.env.Hub.Status().Update(f.Context(), web))
	f.wrote("a status", map[string]int{})
	f.stop()
	f.start()
	f.wrote("a restart after a status", map[string]int{})
}
