package installation

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// DefaultName is the default name of the agent's Deployment.
	DefaultName = "karmada-agent"
	// Secret is the name of the Secret with the control plane's kubeconfig, and the key in it.
	Secret = "karmada-kubeconfig"
	// account is the agent's ServiceAccount.
	account = "karmada-agent-sa"
	// owner is the field owner of what is applied.
	owner = client.FieldOwner("flotilla-register")
)

// Options configure the agent. Cluster, Image and Kubeconfig are required.
type Options struct {
	// Cluster is the name of the cluster on the control plane.
	Cluster string
	// Name is the name of the Deployment; empty means DefaultName.
	Name string
	// Namespace is the namespace of the agent; empty means karmada-system.
	Namespace string
	// Image is the agent's image.
	Image string
	// Replicas is the number of Pods; 0 means 1.
	Replicas int32
	// Lasting keeps the agent's data on a volume that outlives its Pods; see func Lasting.
	Lasting bool
	// Kubeconfig is the agent's kubeconfig for the control plane.
	Kubeconfig []byte
	// Args are further flags of the agent.
	Args []string
	// DryRun reports the steps without doing them.
	DryRun bool
	// Progress is called with every step; it may be nil.
	Progress func(string)
}

func (o *Options) complete() {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Namespace == "" {
		o.Namespace = workv1alpha2.NamespaceKarmadaSystem
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Install installs the agent in the member, or updates it.
func Install(ctx context.Context, member client.Client, o Options) error {
	o.complete()
	for _, obj := range o.objects() {
		what := describe(member, obj)
		if o.DryRun {
			o.Progress("would apply " + what)
			continue
		}
		if err := apply(ctx, member, obj); err != nil {
			return fmt.Errorf("apply %s in the member: %w", what, err)
		}
		o.Progress("applied " + what)
	}
	return nil
}

// Check returns an error if the member would refuse the agent: it applies each object in a dry run.
// Objects in a namespace that does not exist yet cannot be checked.
func Check(ctx context.Context, member client.Client, o Options) error {
	o.complete()
	dry := client.NewDryRunClient(member)
	missing := false
	for _, obj := range o.objects() {
		err := apply(ctx, dry, obj)
		if _, space := obj.(*corev1.Namespace); space && err == nil {
			err = member.Get(ctx, client.ObjectKeyFromObject(obj), &corev1.Namespace{})
			missing = apierrors.IsNotFound(err)
		}
		if err != nil && !(missing && apierrors.IsNotFound(err)) {
			return fmt.Errorf("apply %s in the member: %w", describe(member, obj), err)
		}
	}
	return nil
}

// apply applies an object, and takes over fields that others have set.
func apply(ctx context.Context, member client.Client, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, member.Scheme())
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(out.Object, "status")
	return member.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), owner, client.ForceOwnership)
}

func describe(member client.Client, obj client.Object) string {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(obj, member.Scheme()); err == nil {
		kind = gvk.Kind
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// Remove removes the agent from the member, except for its namespace, which may have other objects.
func Remove(ctx context.Context, member client.Client, o Options) error {
	o.complete()
	o.Lasting = true // to remove its volume as well, if it has one
	objects := o.objects()
	slices.Reverse(objects)
	objects = append(objects, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: clusterv1alpha1.AgentLease}}) // its own
	for _, obj := range objects {
		if _, isNamespace := obj.(*corev1.Namespace); isNamespace {
			continue
		}
		what := describe(member, obj)
		if o.DryRun {
			err := member.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("read %s of the member: %w", what, err)
			}
			if err == nil {
				o.Progress("would remove " + what)
			}
			continue
		}
		err := member.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("remove %s from the member: %w", what, err)
		}
		o.Progress("removed " + what)
	}
	return nil
}

// Kubeconfig reads the control plane's kubeconfig of an installed agent.
func Kubeconfig(ctx context.Context, member client.Reader, namespace string) ([]byte, error) {
	o := Options{Namespace: namespace}
	o.complete()
	secret := &corev1.Secret{}
	if err := member.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: Secret}, secret); err != nil {
		return nil, fmt.Errorf("read the agent's way to the control plane: %w", err)
	}
	return secret.Data[Secret], nil
}

const readyPoll = 500 * time.Millisecond

// Ready waits until the agent runs.
func Ready(ctx context.Context, member client.Reader, o Options, within time.Duration) error {
	o.complete()
	last := "there are no pods yet"
	err := wait.PollUntilContextTimeout(ctx, readyPoll, within, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := member.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, condition := range d.Status.Conditions {
			if condition.Status != corev1.ConditionTrue && condition.Message != "" {
				last = condition.Message
			}
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == o.Replicas && d.Status.AvailableReplicas == o.Replicas, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the agent %s/%s does not run after %s: %s", o.Namespace, o.Name, within, last)
	}
	return err
}

func labels() map[string]string {
	return map[string]string{workv1alpha2.KarmadaSystemLabel: workv1alpha2.KarmadaSystemLabelValue}
}

// objects returns the objects of the agent, in the order of their creation.
func (o *Options) objects() []client.Object {
	local := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: labels()}
	}
	global := metav1.ObjectMeta{Name: o.Name, Labels: labels()}
	out := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}},
		&corev1.ServiceAccount{ObjectMeta: local(account)},
		// The agent creates whatever the fleet should run here.
		&rbacv1.ClusterRole{ObjectMeta: global, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{rbacv1.VerbAll}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{rbacv1.NonResourceAll}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: *global.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.Namespace, Name: account}},
		},
		&corev1.Secret{ObjectMeta: local(Secret), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{Secret: o.Kubeconfig}},
	}
	if o.Lasting {
		out = append(out, o.volumeClaim(local(volumeClaim)))
	}
	return append(out, o.deployment(local(o.Name)))
}
