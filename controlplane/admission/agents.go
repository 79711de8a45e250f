package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/admission/ratelimit"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// Agents restricts the agents of clusters to their own objects and fields where RBAC cannot: RBAC knows
// neither the name of an object that is being created, nor which fields a write changes.
type Agents struct {
	*admission.Handler
	hub  dynamic.Interface
	rate *ratelimit.Limit
	// karmadas is true if some agents may be Karmada's, registered by karmadactl.
	karmadas bool
	rules    map[schema.GroupResource]agentRule
}

var (
	_ admission.MutationInterface       = (*Agents)(nil)
	_ admission.ValidationInterface     = (*Agents)(nil)
	_ admission.InitializationValidator = (*Agents)(nil)
)

// An agentRule returns an error with the reason if the agent of a cluster may not make
// a write, and nil if it may.
type agentRule func(ctx context.Context, cluster string, w agentWrite) error

// agentWrite is what a request would store.
type agentWrite struct {
	admission.Attributes
	admission.ObjectInterfaces
}

// NewAgents returns the plugin. With karmadas, clusters may also be registered by
// karmadactl and run Karmada's agent.
func NewAgents(clk clock.PassiveClock, karmadas bool) *Agents {
	p := &Agents{Handler: admission.NewHandler(admission.Create, admission.Update), rate: ratelimit.New(clk), karmadas: karmadas}
	p.rules = map[schema.GroupResource]agentRule{
		{Group: clusterv1alpha1.GroupName, Resource: "clusters"}: p.cluster,
		{Group: workv1alpha1.GroupName, Resource: "works"}:       agentWork,
		{Resource: "secrets"}:                              agentSecret,
		{Resource: "configmaps"}:                           agentProfile,
		{Resource: "events"}:                               agentEvent,
		{Group: "coordination.k8s.io", Resource: "leases"}: agentLease,
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}: nil, // see requests
	}
	return p
}

// SetDynamicClient sets the client. The server calls it with a client of its own.
func (p *Agents) SetDynamicClient(hub dynamic.Interface) { p.hub = hub }

// ValidateInitialization is called when the server is built.
func (p *Agents) ValidateInitialization() error {
	if p.hub == nil {
		return errors.New("no client")
	}
	return nil
}

// Validate refuses what an agent, or a user that asks for an agent's certificate, may not write.
func (p *Agents) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetUserInfo() == nil {
		return nil
	}
	w, resource := agentWrite{a, o}, a.GetResource().GroupResource()
	rule, known := p.rules[resource]
	if !known {
		return nil // RBAC decides
	}
	if resource.Group == certificatesv1.GroupName {
		return p.request(w)
	}
	cluster, ok := identity.ClusterOfAgent(a.GetUserInfo().GetName())
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	if err := rule(ctx, cluster, w); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// request refuses a request for any certificate other than that of the agent whose
// cluster the user belongs to, and requests that come too often.
func (p *Agents) request(w agentWrite) error {
	if w.GetSubresource() != "" || w.GetOperation() != admission.Create {
		return nil
	}
	speaks, cluster := speaksFor(w.GetUserInfo())
	if !speaks {
		return nil
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := w.read(w.GetObject(), csr); err != nil {
		return apierrors.NewInternalError(err)
	}
	wanted, err := identity.Check(&csr.Spec)
	switch {
	case p.karmadas && errors.Is(err, identity.ErrGenerator):
		err = mayAskForRights(w, csr.Name, cluster)
	case errors.Is(err, identity.ErrNotAgent):
		err = fmt.Errorf("%w: %s may ask for nothing else", err, w.GetUserInfo().GetName())
	case err == nil && cluster != "" && wanted != cluster:
		err = fmt.Errorf("%s may ask for the certificate of the agent of %s alone, not of %s", w.GetUserInfo().GetName(), cluster, wanted)
	}
	if err != nil {
		return admission.NewForbidden(w, err)
	}
	if !w.IsDryRun() && !p.rate.Allows(w.GetUserInfo().GetName()) {
		return apierrors.NewTooManyRequests(w.GetUserInfo().GetName()+" asks for certificates too often: the next one is due in some seconds", ratelimit.RetryAfter)
	}
	return nil
}

// speaksFor reports whether a user may only ask for certificates of agents, and for
// which cluster; an empty cluster means any.
func speaksFor(u user.Info) (speaks bool, cluster string) {
	if cluster, ok := identity.ClusterOfAgent(u.GetName()); ok {
		return true, cluster
	}
	if cluster, ok := identity.ClusterOfExpiredAgent(u.GetName()); ok {
		return true, cluster
	}
	if token, ok := identity.TokenOf(u.GetName(), u.GetGroups()); ok {
		return token.Cluster != "" || slices.Contains(u.GetGroups(), identity.TokensGroup), token.Cluster
	}
	return false, ""
}

// cluster lets an agent create its own Cluster and change the fields that are its own.
func (p *Agents) cluster(ctx context.Context, cluster string, w agentWrite) error {
	obj, ok := w.GetObject().(*clusterv1alpha1.Cluster)
	if !ok {
		return errors.New("it is no Cluster")
	}
	old, _ := w.GetOldObject().(*clusterv1alpha1.Cluster)
	switch {
	case obj.Name != cluster:
		return notOwn("Cluster", obj.Name, cluster)
	case obj.Spec.SyncMode != clusterv1alpha1.Pull:
		return errors.New("spec.syncMode: an agent's cluster is in pull mode")
	case !ownReference(obj.Spec.SecretRef, cluster):
		return fmt.Errorf("spec.secretRef: it must be %s/%s", workv1alpha2.NamespaceKarmadaCluster, cluster)
	case !ownReference(obj.Spec.ImpersonatorSecretRef, cluster+impersonatorSuffix):
		return fmt.Errorf("spec.impersonatorSecretRef: it must be %s/%s", workv1alpha2.NamespaceKarmadaCluster, cluster+impersonatorSuffix)
	}
	made := old == nil
	if made { // the agent cannot change what an administrator declared with the token
		approved, err := p.approved(ctx, cluster)
		if err != nil {
			return err
		}
		old = &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ResourceModels: validate.DefaultModels()}}
		approved.Give(old)
	}
	if !maps.Equal(old.Labels, obj.Labels) || !slices.Equal(old.Finalizers, obj.Finalizers) || !apiequality.Semantic.DeepEqual(old.OwnerReferences, obj.OwnerReferences) {
		return errors.New("metadata: labels, finalizers and owners of a cluster are not its agent's to change")
	}
	if !sameTaints(old.Spec.Taints, obj.Spec.Taints) {
		return errors.New("spec.taints: they are not the agent's to change")
	}
	if key := changedKey(old.Annotations, obj.Annotations, agentsAnnotations()...); key != "" {
		return fmt.Errorf("metadata.annotations.%s: it is not the agent's to change", key)
	}
	if !apiequality.Semantic.DeepEqual(old.Spec.ResourceModels, obj.Spec.ResourceModels) {
		return errors.New("spec.resourceModels: they say how the room of the cluster is counted, and are not the agent's to change")
	}
	if old.Spec.ID == obj.Spec.ID && obj.Spec.ID != "" {
		return nil
	}
	if old.Spec.ID != "" {
		return fmt.Errorf("spec.id: it is %s and cannot change; if the cluster was made anew, flotilla unregister %s first", old.Spec.ID, cluster)
	}
	registered, err := p.registration(ctx, cluster)
	switch {
	case err != nil:
		return err
	case made && registered != nil && metav1.GetControllerOfNoCopy(registered) != nil:
		// The role belongs to a Cluster, and is deleted with it: its agent cannot create a second one.
		return fmt.Errorf("the cluster %s is in the fleet already; if it has left: register it again with a token, which flotilla token create makes", cluster)
	}
	return mayHave(cluster, obj.Spec.ID, registered)
}

// agentsAnnotations returns the keys of the control plane's own annotations that an
// agent may change, among them the one with the properties that it asks for.
func agentsAnnotations() []string {
	return []string{clusterv1alpha1.AccountsNamespaceAnnotation, clusterv1alpha1.TLSServerNameAnnotation, identity.RequestedAnnotation}
}

// sameTaints compares taints without the time at which they were added.
func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool { return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect })
}

// registration returns the ClusterRole that an agent has had since its cluster was
// registered; nil if there is none.
func (p *Agents) registration(ctx context.Context, cluster string) (*unstructured.Unstructured, error) {
	role, err := p.hub.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).Get(ctx, identity.Role(cluster), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // see the doc comment
	}
	if err != nil {
		return nil, fmt.Errorf("read the registration of %s: %w", cluster, err)
	}
	return role, nil
}

const impersonatorSuffix = identity.ImpersonatorSuffix

// ownReference reports whether a reference is nil or refers to the Secret of that name.
func ownReference(ref *clusterv1alpha1.LocalSecretReference, name string) bool {
	return ref == nil || ref.Namespace == workv1alpha2.NamespaceKarmadaCluster && ref.Name == name
}

// mayHave refuses an id other than the registered one. Twins refuses the id of another
// cluster, for every user.
func mayHave(cluster, id string, role *unstructured.Unstructured) error {
	if role != nil {
		if registered := role.GetAnnotations()[identity.ClusterIDAnnotation]; registered != "" && registered != id {
			return fmt.Errorf("spec.id: it is %s, but %s was registered for the cluster with the id %s", id, cluster, registered)
		}
	}
	return nil
}

// agentWork lets an agent add and remove its finalizer on a Work. Only the control plane
// writes the spec; an agent reports results in the status.
func agentWork(_ context.Context, _ string, w agentWrite) error {
	obj, ok := w.GetObject().(*workv1alpha1.Work)
	old, found := w.GetOldObject().(*workv1alpha1.Work)
	if !ok || !found {
		return errors.New("works are the control plane's to make")
	}
	own := func(finalizer string) bool { return finalizer == workv1alpha2.ExecutionControllerFinalizer }
	was := slices.DeleteFunc(slices.Clone(old.Finalizers), own)
	is := slices.DeleteFunc(slices.Clone(obj.Finalizers), own)
	if !slices.Equal(was, is) || !maps.Equal(old.Labels, obj.Labels) || !maps.Equal(old.Annotations, obj.Annotations) ||
		!apiequality.Semantic.DeepEqual(old.OwnerReferences, obj.OwnerReferences) || !apiequality.Semantic.DeepEqual(old.Spec, obj.Spec) {
		return fmt.Errorf("an agent changes of a Work its status and the finalizer %s alone", workv1alpha2.ExecutionControllerFinalizer)
	}
	return nil
}

// agentSecret lets an agent write the Secrets with its cluster's credentials, and no
// others.
func agentSecret(_ context.Context, cluster string, w agentWrite) error {
	secret := &corev1.Secret{}
	if err := w.read(w.GetObject(), secret); err != nil {
		return err
	}
	if secret.Name != cluster && secret.Name != cluster+impersonatorSuffix {
		return notOwn("Secret", secret.Name, cluster, cluster+impersonatorSuffix)
	}
	if secret.Type != corev1.SecretTypeOpaque {
		return fmt.Errorf("type: the credentials of a cluster are of the type %s, not %s", corev1.SecretTypeOpaque, secret.Type)
	}
	return nil
}

// agentProfile lets an agent report its cluster's nodes, and the pods that wait for one.
func agentProfile(_ context.Context, _ string, w agentWrite) error {
	received := &corev1.ConfigMap{}
	if err := w.read(w.GetObject(), received); err != nil {
		return err
	}
	if received.Name != clusterv1alpha1.NodeProfileName {
		return notOwn("ConfigMap", received.Name, clusterv1alpha1.NodeProfileName)
	}
	text, ok := received.Data[clusterv1alpha1.NodeProfileKey]
	waits, also := received.Data[clusterv1alpha1.NodeProfileWaitingKey]
	more := len(received.Data) + len(received.BinaryData) + len(received.Labels) + len(received.Annotations) + len(received.Finalizers) + len(received.OwnerReferences)
	if also {
		more--
	}
	if !ok || more > 1 || len(text) > profile.MostBytes || len(waits) > waiting.MostBytes {
		return fmt.Errorf("the ConfigMap %s has data.%s, of %d bytes at most, may have data.%s, of %d, and has nothing else",
			received.Name, clusterv1alpha1.NodeProfileKey, profile.MostBytes, clusterv1alpha1.NodeProfileWaitingKey, waiting.MostBytes)
	}
	return nil
}

func agentLease(_ context.Context, cluster string, w agentWrite) error {
	lease, err := meta.Accessor(w.GetObject())
	if err != nil {
		return err
	}
	own := cluster
	if w.GetNamespace() == workv1alpha2.NamespaceKarmadaSystem { // Karmada's agents elect a leader here
		own = identity.ElectionLease(cluster)
	}
	if lease.GetName() != own {
		return notOwn("Lease", lease.GetName(), own)
	}
	return nil
}

// agentEvent lets an agent write Events about its own cluster and Works.
func agentEvent(_ context.Context, cluster string, w agentWrite) error {
	for _, obj := range []runtime.Object{w.GetObject(), w.GetOldObject()} {
		if obj == nil {
			continue
		}
		reported := &corev1.Event{}
		if err := w.read(obj, reported); err != nil {
			return err
		}
		about := reported.InvolvedObject
		isCluster := about.Kind == clusterv1alpha1.ResourceKindCluster && about.Name == cluster && about.Namespace == ""
		if !isCluster && about.Namespace != workv1alpha2.ExecutionNamespace(cluster) {
			return fmt.Errorf("the event is about %s %s: an agent tells of its own cluster and Works alone", about.Kind, about.Name)
		}
	}
	return nil
}

func notOwn(kind, name string, own ...string) error {
	return fmt.Errorf("the %s %q is not this agent's: its own is %q", kind, name, own)
}

// read converts an object of one of Kubernetes' own kinds from the server's internal
// form.
func (w agentWrite) read(from, into runtime.Object) error {
	if err := w.GetObjectConvertor().Convert(from, into, nil); err != nil {
		return fmt.Errorf("read what is written: %w", err)
	}
	return nil
}
