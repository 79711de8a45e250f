package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

const (
	reasonApproved = "AutoApproved"
	reasonRefused  = "NotApproved"
	// fetch is how long a token that has been used may still read the result of its
	// request.
	fetch = 5 * time.Minute
)

// undecided reports whether a request waits for an approval.
func undecided(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
}

// signing is one pass about one request.
type signing struct {
	key types.NamespacedName
	csr *certificatesv1.CertificateSigningRequest
	// asked is what the request asks for, by whom, and known what that is judged by.
	asked request
	known facts
	// token is what the requester signed in with; nil for none.
	token *corev1.Secret
}

// Reconcile decides one request.
func (a *approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := signing{key: req.NamespacedName}
	return loop.Result(loop.Run(ctx, &s, a.read, a.identify, a.gather, a.answer))
}

// read reads the request, and ends the pass if that waits for nobody.
func (a *approver) read(ctx context.Context, s *signing) (loop.Next, error) {
	s.csr = &certificatesv1.CertificateSigningRequest{}
	err := a.hub.Get(ctx, s.key, s.csr)
	return loop.Next{Done: err != nil || !undecided(s.csr)}, client.IgnoreNotFound(err)
}

// identify finds out what is asked for, and by whom. It answers what is no agent's request.
func (a *approver) identify(ctx context.Context, s *signing) (loop.Next, error) {
	cluster, err := identity.Check(&s.csr.Spec)
	switch {
	case errors.Is(err, identity.ErrNotAgent):
		return loop.Next{Done: true}, nil
	case a.karmadactl && errors.Is(err, identity.ErrGenerator):
		return loop.Next{Done: true}, a.approveGenerator(ctx, s.csr)
	case err != nil:
		if _, byToken := identity.TokenOf(s.csr.Spec.Username, s.csr.Spec.Groups); byToken || isAgent(s.csr.Spec.Username) {
			return loop.Next{Done: true}, a.deny(ctx, s.csr, err)
		}
		return loop.Next{Done: true}, nil // all other requesters need a person's approval
	}
	s.asked = request{
		uid:     s.csr.UID,
		cluster: cluster,
		id:      s.csr.Annotations[identity.ClusterIDAnnotation],
		by:      requesterOf(s.csr.Spec.Username, s.csr.Spec.Groups, cluster),
		now:     a.clock.Now(),
	}
	if noted := s.csr.Spec.Extra[identity.RegisteredByAnnotation]; len(noted) > 0 {
		s.asked.by.registration = noted[0]
	}
	return loop.Next{}, nil
}

// gather reads what the request is judged by.
func (a *approver) gather(ctx context.Context, s *signing) (_ loop.Next, err error) {
	s.known, s.token, err = a.facts(ctx, s.csr, s.asked)
	return loop.Next{}, err
}

// answer approves the request, denies it, or leaves it to somebody who knows more.
func (a *approver) answer(ctx context.Context, s *signing) (loop.Next, error) {
	switch err := judge(s.asked, s.known); {
	case errors.Is(err, errUndecided):
		return loop.Next{}, nil
	case err != nil:
		return loop.Next{}, a.deny(ctx, s.csr, err)
	}
	again, err := a.approve(ctx, s.csr, s.asked, s.known, s.token)
	return loop.Next{After: again}, ignoreGone(err)
}

// facts reads what a verdict depends on, from the server itself: a cache may not
// know yet what was just decided.
func (a *approver) facts(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, asked request) (facts, *corev1.Secret, error) {
	known := facts{}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := a.live.List(ctx, clusters); err != nil {
		return known, nil, fmt.Errorf("list the clusters: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		switch {
		case c.Name == asked.cluster:
			known.cluster = c
		case asked.id != "" && c.Spec.ID == asked.id:
			known.twin = c
		}
	}
	var err error
	if known.role, err = a.rights.roleOf(ctx, asked.cluster); err != nil {
		return known, nil, err
	}
	if known.secret, err = a.evidence.taken(ctx, asked.cluster); err != nil {
		return known, nil, err
	}
	token, err := a.evidence.credit(ctx, csr, asked.by, &known)
	return known, token, err
}

// approve uses up the token, gives the agent its rights, and approves, in this
// order: what is cut off between two steps is repeated for the same request, and
// for no other. It returns how long the last step has to wait, if it has.
func (a *approver) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, asked request, known facts, token *corev1.Secret) (time.Duration, error) {
	if token != nil && known.usedBy == "" {
		if err := a.use(ctx, token, csr.UID); err != nil {
			return 0, err
		}
	}
	if !asked.by.self {
		if again, err := a.enroll(ctx, csr, asked, known); again > 0 || err != nil {
			return again, err
		}
	}
	message := fmt.Sprintf("the agent of cluster %s, asked for by %s", asked.cluster, asked.by.user)
	if err := a.decide(ctx, csr, certificatesv1.CertificateApproved, reasonApproved, message); err != nil {
		return 0, err
	}
	log.FromContext(ctx).Info("approved the certificate of an agent", "cluster", asked.cluster, "by", asked.by.user)
	return 0, nil
}

// use marks a token as used by a request. It expires soon after: until then it may
// read the result of the request.
func (a *approver) use(ctx context.Context, token *corev1.Secret, by types.UID) error {
	used := token.DeepCopy()
	used.Annotations = over(used.Annotations, map[string]string{identity.UsedByAnnotation: string(by)})
	used.Data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(a.clock.Now().Add(fetch).UTC().Format(time.RFC3339))
	delete(used.Data, bootstrapapi.BootstrapTokenUsageSigningKey)
	if err := a.hub.Update(ctx, used); err != nil { // optimistic locking: what was read must not have changed
		return fmt.Errorf("use a token: %w", err)
	}
	return nil
}

// enroll gives the agent of a registration its rights, and returns how long its
// certificate has to wait. What certificates the name had before are good for ends with
// it: all that was approved for the name is signed in an earlier second, or never.
func (a *approver) enroll(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, asked request, known facts) (time.Duration, error) {
	begins := csr.CreationTimestamp.Time
	if known.role != nil {
		if known.role.Annotations[identity.RegisteredByAnnotation] == string(csr.UID) {
			return untilBegin(known.role, a.clock.Now())
		}
		if err := a.withdraw(ctx, csr, asked.cluster); err != nil {
			return 0, err
		}
		begins = a.clock.Now().Truncate(time.Second).Add(time.Second)
	}
	annotations := map[string]string{
		identity.NotBeforeAnnotation:    begins.UTC().Format(time.RFC3339),
		identity.RegisteredByAnnotation: string(csr.UID),
		identity.ClusterIDAnnotation:    asked.id,
	}
	if known.properties != "" || known.role != nil {
		annotations[identity.PropertiesAnnotation] = known.properties
	}
	var owners []metav1.OwnerReference
	if known.cluster != nil {
		owner := metav1.NewControllerRef(known.cluster, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
		owner.BlockOwnerDeletion = nil
		owners = append(owners, *owner)
	}
	if err := a.describe(ctx, known.cluster, known.properties); err != nil {
		return 0, err
	}
	given, err := a.rights.put(ctx, known.role, asked.cluster, annotations, owners)
	if err != nil {
		return 0, err
	}
	if err := a.rights.give(ctx, asked.cluster, given, roles(asked.cluster)); err != nil || known.role == nil {
		return 0, err
	}
	return untilBegin(given, a.clock.Now())
}

// untilBegin returns how long it is until a registration begins.
func untilBegin(role *rbacv1.ClusterRole, now time.Time) (time.Duration, error) {
	begins, err := time.Parse(time.RFC3339, role.Annotations[identity.NotBeforeAnnotation])
	if err != nil {
		return 0, fmt.Errorf("read when %s begins: %w", role.Name, err)
	}
	return max(begins.Sub(now), 0), nil
}

// withdraw removes all requests for the agent of a cluster that have no certificate yet,
// but for one: they were made, or approved, by what is not good any more.
func (a *approver) withdraw(ctx context.Context, but *certificatesv1.CertificateSigningRequest, cluster string) error {
	all := &certificatesv1.CertificateSigningRequestList{}
	if err := a.live.List(ctx, all); err != nil {
		return fmt.Errorf("list the requests for certificates: %w", err)
	}
	for i := range all.Items {
		csr := &all.Items[i]
		of, err := identity.Check(&csr.Spec)
		if err != nil || of != cluster || csr.UID == but.UID || len(csr.Status.Certificate) > 0 {
			continue
		}
		if err := a.hub.Delete(ctx, csr, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("withdraw the request %s: %w", csr.Name, err)
		}
	}
	return nil
}

// describe sets on a cluster that is registered again what its token declares of it. One
// that is new has it from its role, when it is made.
func (a *approver) describe(ctx context.Context, cluster *clusterv1alpha1.Cluster, properties string) error {
	declared, err := identity.ParseProperties(properties)
	if err != nil || cluster == nil || declared.IsZero() {
		return err
	}
	desired := cluster.DeepCopy()
	declared.Give(desired)
	if equality.Semantic.DeepEqual(cluster, desired) {
		return nil
	}
	if err := a.hub.Patch(ctx, desired, client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write what the token says of cluster %s: %w", cluster.Name, err)
	}
	return nil
}

func (a *approver) deny(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why error) error {
	if err := ignoreGone(a.decide(ctx, csr, certificatesv1.CertificateDenied, reasonRefused, why.Error())); err != nil {
		return err
	}
	log.FromContext(ctx).Info("refused the certificate of an agent", "by", csr.Spec.Username, "why", why.Error())
	return nil
}

func (a *approver) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, verdict certificatesv1.RequestConditionType, reason, message string) error {
	decided := csr.DeepCopy()
	now := metav1.NewTime(a.clock.Now())
	decided.Status.Conditions = append(decided.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: verdict, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	})
	if err := a.hub.SubResource("approval").Update(ctx, decided); err != nil {
		return fmt.Errorf("decide the request %s: %w", csr.Name, err)
	}
	return nil
}

// ignoreGone drops what was removed meanwhile. A change brings a request back by
// itself, but not all that it depends on does: conflicts are tried again.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
