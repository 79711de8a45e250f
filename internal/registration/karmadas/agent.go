package karmadas

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// clusterNamespace is the namespace of credentials and heartbeats.
const clusterNamespace = "karmada-cluster"

// Agent is Karmada's agent of a cluster. Use NewAgent.
type Agent struct {
	client.WithWatch

	// Cluster is the name of the cluster, and ID the UID of its namespace
	// kube-system.
	Cluster, ID string
}

// NewAgent returns the agent of a cluster; hub is a connection with its
// certificate.
func NewAgent(hub *rest.Config, cluster, id string) (*Agent, error) {
	c, err := client.NewWithWatch(hub, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	return &Agent{WithWatch: c, Cluster: cluster, ID: id}, nil
}

// Space returns the namespace of its Works.
func (a *Agent) Space() string { return "karmada-es-" + a.Cluster }

// Elect makes it the leader of its replicas.
func (a *Agent) Elect(ctx context.Context) error {
	return a.renew(ctx, client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent-" + a.Cluster}, 15)
}

// Beat renews its heartbeat.
func (a *Agent) Beat(ctx context.Context) error {
	return a.renew(ctx, client.ObjectKey{Namespace: clusterNamespace, Name: a.Cluster}, 40)
}

// renew creates or renews a Lease.
func (a *Agent) renew(ctx context.Context, key client.ObjectKey, seconds int32) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := a.Get(ctx, key, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the lease %s: %w", key, err)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(a.Cluster), ptr.To(seconds), ptr.To(metav1.NowMicro())
	if err != nil {
		err = a.Create(ctx, lease)
	} else {
		err = a.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("hold the lease %s: %w", key, err)
	}
	return nil
}

// Start sends the requests of an agent that starts: it checks whether its cluster
// is registered under another name, creates its credentials and its Cluster, and
// begins to watch.
func (a *Agent) Start(ctx context.Context) error {
	all := &clusterv1alpha1.ClusterList{}
	if err := a.List(ctx, all); err != nil {
		return fmt.Errorf("list all clusters: %w", err)
	}
	for _, c := range all.Items {
		if c.Spec.ID == a.ID && c.Name != a.Cluster {
			return fmt.Errorf("the cluster is %s already", c.Name)
		}
	}
	if err := a.Get(ctx, client.ObjectKey{Name: clusterNamespace}, &corev1.Namespace{}); err != nil {
		return fmt.Errorf("read the namespace of clusters: %w", err)
	}
	secrets := []*corev1.Secret{a.secret("", "caBundle", "token"), a.secret("-impersonator", "token")}
	for _, secret := range secrets {
		if err := a.Create(ctx, secret); err != nil {
			return fmt.Errorf("make secret %s: %w", secret.Name, err)
		}
	}
	cluster := a.cluster()
	if err := a.Create(ctx, cluster); err != nil {
		return fmt.Errorf("make the Cluster: %w", err)
	}
	for _, secret := range secrets {
		was := secret.DeepCopy()
		if err := controllerutil.SetOwnerReference(cluster, secret, a.Scheme()); err != nil {
			return err
		}
		if err := a.Patch(ctx, secret, client.MergeFrom(was)); err != nil {
			return fmt.Errorf("own secret %s: %w", secret.Name, err)
		}
	}
	return a.watch(ctx)
}

func (a *Agent) secret(suffix string, keys ...string) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: a.Cluster + suffix}, Data: map[string][]byte{}}
	for _, key := range keys {
		out.Data[key] = []byte(key + " of " + a.Cluster)
	}
	return out
}

func (a *Agent) cluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: a.Cluster},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Pull, ID: a.ID, APIEndpoint: "https://member.example:6443",
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: clusterNamespace, Name: a.Cluster},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: clusterNamespace, Name: a.Cluster + "-impersonator"},
		},
	}
}

// watch begins the watches that the agent's loops need, and stops them at once:
// this shows whether it may.
func (a *Agent) watch(ctx context.Context) error {
	lists := map[string]client.ObjectList{
		"clusters":       &clusterv1alpha1.ClusterList{},
		"works":          &workv1alpha1.WorkList{},
		"customizations": &configv1alpha1.ResourceInterpreterCustomizationList{},
		"webhooks":       &configv1alpha1.ResourceInterpreterWebhookConfigurationList{},
	}
	for what, list := range lists {
		var in []client.ListOption
		if what == "works" {
			in = append(in, client.InNamespace(a.Space()))
		}
		// RBAC objects are created a moment after the namespace that they are for.
		err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
			err := a.List(ctx, list, in...)
			if apierrors.IsForbidden(err) && what == "works" {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		watch, err := a.Watch(ctx, list, in...)
		if err != nil {
			return fmt.Errorf("watch %s: %w", what, err)
		}
		watch.Stop()
	}
	return nil
}

// Report sets the status of its Cluster to ready, once the Cluster has the
// control plane's finalizer.
func (a *Agent) Report(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1alpha1.Cluster{}
		if last = a.Get(ctx, client.ObjectKey{Name: a.Cluster}, cluster); last != nil {
			return false, nil
		}
		if !controllerutil.ContainsFinalizer(cluster, "karmada.io/cluster-controller") {
			last = errors.New("the Cluster has no finalizer of the control plane")
			return false, nil
		}
		cluster.Status.KubernetesVersion = "v1.34.0"
		cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
			{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "namespaces", Kind: "Namespace"}}},
		}
		for kind, reason := range map[string]string{"Ready": "ClusterReady", "CompleteAPIEnablements": "Complete"} {
			meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "as Karmada's agent says"})
		}
		last = a.Status().Update(ctx, cluster)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("report the status of the cluster: %w (last: %w)", err, last)
	}
	return nil
}

// Apply adds the agent's finalizer to a Work, and sets its status.
func (a *Agent) Apply(ctx context.Context, work *workv1alpha1.Work, became ...workv1alpha1.ManifestStatus) error {
	if controllerutil.AddFinalizer(work, "karmada.io/execution-controller") {
		if err := a.Update(ctx, work); err != nil {
			return fmt.Errorf("hold the Work %s: %w", work.Name, err)
		}
	}
	work.Status.ManifestStatuses = became
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: "Applied", Status: metav1.ConditionTrue, Reason: "AppliedSuccessful", Message: "Manifest has been successfully applied",
	})
	if err := a.Status().Update(ctx, work); err != nil {
		return fmt.Errorf("write the status of the Work %s: %w", work.Name, err)
	}
	return nil
}

// LetGo removes the agent's finalizer from a Work that is being deleted.
func (a *Agent) LetGo(ctx context.Context, work *workv1alpha1.Work) error {
	controllerutil.RemoveFinalizer(work, "karmada.io/execution-controller")
	return a.Update(ctx, work)
}

// Record creates an Event about an object, and then raises its count.
func (a *Agent) Record(ctx context.Context, about corev1.ObjectReference, reason string) error {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", about.Name, time.Now().UnixNano())},
		InvolvedObject: about, Reason: reason, Message: "as Karmada's agent says", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "cluster-status-controller"}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}
	if err := a.Create(ctx, event); err != nil {
		return fmt.Errorf("tell of %s: %w", reason, err)
	}
	return a.Patch(ctx, event, client.RawPatch(types.StrategicMergePatchType, []byte(`{"count":2}`)))
}
