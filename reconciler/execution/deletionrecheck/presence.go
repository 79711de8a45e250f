package deletionrecheck

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Answers reports whether a cluster has answered since somebody asked, and since when it does without a break;
// if it has not, it is asked, and again is when to look.
type Answers func(cluster string, asked time.Time) (since time.Time, yes bool, again time.Duration)

// Returns is when clusters began to answer this process: at its start, or after a break. Its zero value knows of none. It
// is safe for use by several goroutines.
type Returns struct {
	mu sync.Mutex
	of map[string]time.Time
}

// Note records that a cluster began to answer.
func (r *Returns) Note(cluster string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(cluster, now)
}

func (r *Returns) note(cluster string, now time.Time) {
	if r.of == nil {
		r.of = map[string]time.Time{}
	}
	r.of[cluster] = now
}

// last returns when a cluster began to answer: now if that is not known.
func (r *Returns) last(cluster string, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.of[cluster]; !known {
		r.note(cluster, now)
	}
	return r.of[cluster]
}

// failures is when removals last failed as their cluster could not be reached, or were heard of late.
type failures struct {
	mu   sync.Mutex
	at   map[client.ObjectKey]time.Time
	seen map[client.ObjectKey]types.UID // the Works that an agent knows to be deleted
}

func (f *failures) of(work client.ObjectKey) (at time.Time, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, failed = f.at[work]
	return at, failed
}

// Tried notes how a removal went. One that did not reach its cluster was interrupted, however soon that is back, and whether or not
// anybody else has noticed.
func (j *Judge) Tried(work client.ObjectKey, err error) {
	if j.opts.Answers == nil && j.opts.Hub == nil || !unreached(err) {
		return
	}
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	j.failures.at[work] = j.opts.Clock.Now()
}

// Forget drops what is kept of a Work that is gone.
func (j *Judge) Forget(work client.ObjectKey) {
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	delete(j.failures.at, work)
	delete(j.failures.seen, work)
}

// unreached reports whether an error of a removal says that the cluster was not reached: it, or what stands before it, did
// not answer.
func unreached(err error) bool {
	var blocked *waitqueue.Blocked
	if errors.As(err, &blocked) {
		return blocked.Cause.Event == waitqueue.OnProof
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return slices.Contains([]int32{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, answer.Status().Code)
	}
	var transport *url.Error
	return errors.As(err, &transport) || errors.Is(err, context.DeadlineExceeded)
}

// broken reports whether this process has missed the cluster, or an agent its hub, since the deletion of a Work began, and since when both
// are back. Timestamps are cut to seconds: one of the second in which that was counts as before.
func (j *Judge) broken(work *workv1alpha1.Work, cluster string) (back time.Time, yes bool) {
	back = j.opts.Returns.last(cluster, j.opts.Clock.Now())
	if hub := j.opts.Hub; hub != nil && hub.Since().After(back) { // an event would come too late
		back = hub.Since()
	}
	if woke := j.woke(); woke.After(back) { // what it had heard by then may be over
		back = woke
	}
	yes = work.DeletionTimestamp.Time.Before(back.Add(j.ahead()))
	if at, failed := j.failures.of(client.ObjectKeyFromObject(work)); failed {
		yes = true
		if at.After(back) {
			back = at
		}
	}
	return back, yes
}

func (j *Judge) woke() time.Time {
	if j.opts.Woke == nil {
		return time.Time{}
	}
	return j.opts.Woke()
}

// Asleep is how long a process has not run when what it was about to remove is judged again: about as long as an agent may be
// late to hear of it.
const Asleep = prompt + time.Second

// Slept returns a *waitqueue.Blocked if this process was stopped since a Work was judged by Keeps, which counts no more then, and
// nil for the zero time: what need not be judged.
func (j *Judge) Slept(judged time.Time) error {
	if judged.IsZero() || !j.woke().After(judged) {
		return nil
	}
	return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnRetry}, After: time.Second, Err: errors.New("this process was stopped before it removed what it was about to")}
}
