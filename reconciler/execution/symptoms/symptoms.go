package symptoms

import (
	"cmp"
	"context"
	"regexp"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

const (
	// defaultPatience is how long a workload may not be ready before its Pods are looked at, and the first pause after that:
	// most are ready sooner.
	defaultDelay = 30 * time.Second
	// longestPause is how long the pause before they are looked at again can be.
	longestPause = 10 * time.Minute
	// mostPods is how many Pods of a workload are looked at.
	mostPods = 100
	// timeout is how long the member may take for them.
	timeout = 5 * time.Second
	// mostAtOnce is how many workloads are looked at concurrently, perSecond how many in a second, and afterwards when one is
	// looked at for which there was no place: a member whose workloads all fail at once has time for other requests.
	mostAtOnce = 4
	perSecond  = 10
	afterwards = time.Second
	// mostMessage is how many bytes of a message are kept in the condition.
	mostMessage = 512
)

// Member is asked for Pods.
type Member interface {
	Pods(ctx context.Context, namespace string, options metav1.ListOptions) ([]corev1.Pod, error)
	// Warnings returns some Warnings about the object with a UID.
	Warnings(ctx context.Context, namespace string, about types.UID) ([]corev1.Event, error)
}

// Object is an object of a Work, and what is known of it in the member.
type Object struct {
	Kind schema.GroupKind
	// Manifest returns what was sent.
	Manifest func() (*unstructured.Unstructured, error)
	// Observed is nil where there is none that is the Work's.
	Observed *members.Observed
	// Known says that Observed is complete.
	Known bool
}

// Symptoms are what the Pods of a cluster's workloads say. Use New. It is safe for use by several goroutines.
type Symptoms struct {
	clock  clock.PassiveClock
	delay  time.Duration
	rate   *rate.Limiter
	places chan struct{}
	mu     sync.Mutex
	cases  map[client.ObjectKey]*illness
}

// illness is a workload that is not ready. Its Work is reconciled by one goroutine at a time.
type illness struct {
	uid        types.UID // of the workload
	generation int64     // of the Work
	due        time.Time // when its Pods are looked at
	reserved   bool      // whether it has its share of the rate then
	pause      time.Duration
	found      symptom.Symptom
}

// New returns Symptoms of which nothing is known yet. Patience is how long a workload may not be ready before its Pods are
// looked at; zero means 30 s.
func New(clock clock.PassiveClock, delay time.Duration) *Symptoms {
	return &Symptoms{clock: clock, delay: cmp.Or(delay, defaultDelay), rate: rate.NewLimiter(perSecond, 1), places: make(chan struct{}, mostAtOnce), cases: map[client.ObjectKey]*illness{}}
}

// Forget drops what is kept of a Work.
func (s *Symptoms) Forget(work client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cases, work)
}

// Report sets the condition PodsReady in the status that a Work is to have, or removes it: of the first of its objects that is
// not ready and has Pods. It looks at them if that is due. It returns when to call it again; zero for not before something
// changes.
func (s *Symptoms) Report(ctx context.Context, member Member, work *workv1alpha1.Work, objects []Object, status *workv1alpha1.WorkStatus) time.Duration {
	key := client.ObjectKeyFromObject(work)
	certain := true
	for i := range objects {
		o := &objects[i]
		if o.Observed == nil || o.Observed.Pending || o.Observed.Health == workv1alpha1.ResourceUnknown {
			certain = certain && o.Observed == nil && o.Known
			continue
		}
		if !rollup.AwaitsPods(o.Kind, o.Observed.Health, o.Observed.Status) {
			continue
		}
		manifest, err := o.Manifest()
		if err != nil {
			continue // which is in the condition Applied
		}
		if pods, has := symptom.PodsOf(manifest, o.Observed.UID); has {
			found, again := s.of(ctx, member, work, manifest, pods)
			s.set(status, work, found)
			return again
		}
	}
	if certain {
		s.Forget(key)
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkPodsReady)
	}
	return 0
}

// of returns what the Pods of a workload say, as far as that is known, and when to look at them again.
func (s *Symptoms) of(ctx context.Context, member Member, work *workv1alpha1.Work, manifest *unstructured.Unstructured, pods symptom.Selection) (symptom.Symptom, time.Duration) {
	ill := s.illness(work, pods.UID)
	now := s.clock.Now()
	if wait := ill.due.Sub(now); wait > 0 {
		return ill.found, wait
	}
	if wait := s.turn(ill, now); wait > 0 {
		ill.due = now.Add(wait)
		return ill.found, wait
	}
	defer func() { <-s.places }()
	ill.pause = min(max(s.delay, 2*ill.pause), longestPause)
	ill.due = now.Add(ill.pause)
	found, err := inspect(ctx, member, manifest, pods)
	switch {
	case err != nil:
		log.FromContext(ctx).V(1).Info("The Pods of a workload that is not ready were not read", "reason", err.Error())
	case found.Reason == ill.found.Reason || !found.GoesOn(ill.found.Reason):
		ill.found = found
	}
	return ill.found, ill.pause
}

// turn takes a place for a look, which the caller gives back, or returns how long the workload has to wait for its turn.
func (s *Symptoms) turn(ill *illness, now time.Time) time.Duration {
	if !ill.reserved {
		ill.reserved = true
		if wait := s.rate.ReserveN(now, 1).DelayFrom(now); wait > 0 {
			return wait
		}
	}
	select {
	case s.places <- struct{}{}:
		ill.reserved = false
		return 0
	default:
		return afterwards
	}
}

// illness returns what is kept of a workload. A new one has what its Work says of it already.
func (s *Symptoms) illness(work *workv1alpha1.Work, uid types.UID) *illness {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(work)
	if ill := s.cases[key]; ill != nil && ill.uid == uid && ill.generation == work.Generation {
		return ill
	}
	ill := &illness{uid: uid, generation: work.Generation, due: s.clock.Now().Add(s.delay)}
	if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkPodsReady); c != nil && c.ObservedGeneration == work.Generation {
		ill.found = symptom.Symptom{Reason: c.Reason, Text: c.Message}
	}
	s.cases[key] = ill
	return ill
}

// inspect asks the member for the Pods of a workload, and returns what they say, or why there are too few. Of one that holds text of a Secret only
// the reason is repeated.
func inspect(ctx context.Context, member Member, manifest *unstructured.Unstructured, pods symptom.Selection) (symptom.Symptom, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := member.Pods(ctx, manifest.GetNamespace(), metav1.ListOptions{LabelSelector: pods.Labels, FieldSelector: pods.Fields, Limit: mostPods})
	if err != nil {
		return symptom.Symptom{}, err
	}
	found := symptom.Public(symptom.Latest(pods.Own(list)))
	if found.Reason == "" && manifest.GetKind() != "Deployment" { // whose status says why there are too few
		warnings, err := member.Warnings(ctx, manifest.GetNamespace(), pods.UID)
		if err != nil {
			return symptom.Symptom{}, err
		}
		found = symptom.PublicByMaker(warnings, pods.UID)
	}
	if found.Reason != "" && manifest.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != "" {
		found.Text = found.Reason
	}
	found.Text = excerpt.Message(found.Text, mostMessage)
	if found.Reason != "" && !mayBeReason.MatchString(found.Reason) {
		found.Reason = workv1alpha1.WorkPodsNotReadyReason
	}
	return found, nil
}

// mayBeReason is what a condition may have as its reason; a member may write anything.
var mayBeReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?$`)

// set writes what was found into the status.
func (s *Symptoms) set(status *workv1alpha1.WorkStatus, work *workv1alpha1.Work, found symptom.Symptom) {
	if found.Reason == "" {
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkPodsReady)
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: found.Reason, Message: found.Text,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(s.clock.Now()),
	})
}
