package webhook

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// When to ask again: soon at first, then less and less often.
const (
	soonest = 10 * time.Millisecond
	latest  = time.Second
)

// pauses are how long a question is left alone that was asked in vain.
var pauses = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 32, Cap: 5 * time.Minute}

// overhead is about what an answer takes in memory beside its content.
const overhead = 512

// entry is a question and what became of it.
type entry struct {
	key  key
	hook *hook
	// sent is nil once it is answered.
	sent *sent
	// since is when it was asked.
	since time.Time
	// cancel ends the call while there is one.
	cancel context.CancelFunc
	// place is where it stands among those that are answered; nil before.
	place  *list.Element
	size   int64
	answer *response
	// err, backoff and retry are of one that was asked in vain.
	err     error
	backoff wait.Backoff
	retry   time.Time
	// course it belongs to. Passed: another question of the course was asked before
	// this one was answered, which was about this object then.
	sequence key
	passed   bool
	about    []byte
}

// sequence is questions about the same, of which one is sent at a time: were each
// sent that is asked, a webhook slower than the changes would never be of use.
// Whoever asks the next one is served the answer to the one before meanwhile.
type sequence struct {
	// out is the one that is not answered; last the one before it, if it was
	// answered, and passed.
	out, last *entry
	at        time.Time // when last was answered
}

// fresh is for how long an answer is served to the question after its own.
const fresh = 30 * time.Second

// flight is an entry whose question is being sent.
type flight struct {
	entry  *entry
	ctx    context.Context //nolint:containedctx // of the one call that is handed over
	cancel context.CancelFunc
}

// responseCache keeps questions: those that wait, those under way, and the answers.
type responseCache struct {
	opts Options
	wake chan struct{} // there may be something to send

	mu       sync.Mutex
	entries  map[key]*entry
	courses  map[key]*sequence
	answered *list.List // of *entry, the one asked last in front
	bytes    int64      // of what is answered
	turn     []*hook    // hooks for which something waits, the next in front
	flying   int
}

func newResponseCache(o Options) *responseCache {
	return &responseCache{opts: o, wake: make(chan struct{}, 1), entries: map[key]*entry{}, courses: map[key]*sequence{}, answered: list.New()}
}

// ask returns the answer to a question. If there is none it sees to it that one
// is on its way, and says when to ask again.
func (rc *responseCache) ask(h *hook, k key, s *sent) (*response, error) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	now := rc.opts.Clock.Now()
	e := rc.entries[k]
	switch {
	case h.gone:
		return nil, pending(h, 0) // who asks again finds who is asked instead
	case e == nil:
		return rc.follow(&entry{key: k, hook: h, sent: s, sequence: s.sequence}, now)
	case e.place == nil:
		return nil, pending(h, now.Sub(e.since))
	case e.err == nil:
		rc.answered.MoveToFront(e.place)
		return e.answer, nil
	case now.Before(e.retry):
		rc.answered.MoveToFront(e.place)
		return nil, &Fault{Hook: h.name, After: e.retry.Sub(now), Err: e.err}
	default:
		e.sent = s
		return nil, rc.enqueue(e, now)
	}
}

// follow sees to a question that was not asked before. It is sent unless one of
// its course is out. The answer to the one before comes with the error.
func (rc *responseCache) follow(e *entry, now time.Time) (*response, error) {
	c := rc.courses[e.sequence]
	if c == nil {
		return nil, rc.enqueue(e, now)
	}
	last := c.last
	if last != nil && now.Sub(c.at) > fresh {
		last = nil
	}
	var err error
	if c.out != nil {
		c.out.passed = true
		err = pending(e.hook, now.Sub(c.out.since))
	} else {
		err = rc.enqueue(e, now)
	}
	if last == nil {
		return nil, err
	}
	answer := *last.answer
	answer.about = last.about
	return &answer, err
}

// advance notes in its course that a question came to its end.
func (rc *responseCache) advance(e *entry, answered bool) {
	c := rc.courses[e.sequence]
	if c == nil || c.out != e {
		return
	}
	if !answered || !e.passed {
		delete(rc.courses, e.sequence)
		return
	}
	c.out, c.last, c.at = nil, e, rc.opts.Clock.Now()
}

// pending says when to ask again what was asked so long ago.
func pending(h *hook, elapsed time.Duration) error {
	return &kinds.Pending{Of: "webhook " + h.name, After: min(max(elapsed/2, soonest), latest)}
}

// enqueue has a question sent. While too many wait, it is left to who asks
// again.
func (rc *responseCache) enqueue(e *entry, now time.Time) error {
	h, size := e.hook, e.sent.size()
	if len(h.waiting) >= rc.opts.Queue || len(h.waiting) > 0 && h.waitingBytes+size > rc.opts.QueueBytes {
		if e.place != nil {
			e.sent = nil
		}
		return pending(h, latest*2)
	}
	if e.place != nil {
		rc.drop(e)
	}
	e.since, e.size = now, size
	rc.entries[e.key] = e
	if e.passed, e.about = false, nil; e.sequence != (key{}) {
		if rc.courses[e.sequence] == nil {
			rc.courses[e.sequence] = &sequence{}
		}
		rc.courses[e.sequence].out = e
	}
	h.waiting = append(h.waiting, e)
	h.waitingBytes += size
	if len(h.waiting) == 1 {
		rc.turn = append(rc.turn, h)
	}
	rc.poke()
	return pending(h, 0)
}

func (rc *responseCache) poke() {
	select {
	case rc.wake <- struct{}{}:
	default:
	}
}

// drop takes an entry from those that are answered.
func (rc *responseCache) drop(e *entry) {
	rc.answered.Remove(e.place)
	rc.bytes -= e.size
	e.place = nil
	delete(rc.entries, e.key)
	if c := rc.courses[e.sequence]; c != nil && c.last == e {
		if c.last = nil; c.out == nil {
			delete(rc.courses, e.sequence)
		}
	}
}

// next returns what may be sent now: in turn one of each hook, as long as there
// is room.
func (rc *responseCache) next(ctx context.Context) []flight {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	var out []flight
	for {
		i := slices.IndexFunc(rc.turn, func(h *hook) bool {
			return h.flying == 0 || h.flying < rc.opts.PerHook && rc.flying < rc.opts.Calls
		})
		if i < 0 {
			return out
		}
		h := rc.turn[i]
		e := h.waiting[0]
		h.waiting, h.waitingBytes = slices.Delete(h.waiting, 0, 1), h.waitingBytes-e.size
		rc.turn = slices.Delete(rc.turn, i, i+1)
		if len(h.waiting) > 0 {
			rc.turn = append(rc.turn, h)
		}
		h.flying++
		rc.flying++
		f := flight{entry: e}
		f.ctx, f.cancel = context.WithCancel(ctx)
		e.cancel = f.cancel
		out = append(out, f)
	}
}

// record keeps what became of a question, and reports whether anybody still
// wants to know.
func (rc *responseCache) record(f flight, answer *response, size int64, err error) bool {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e, h := f.entry, f.entry.hook
	h.flying--
	rc.flying--
	rc.poke()
	if h.gone || f.ctx.Err() != nil {
		if rc.entries[e.key] == e {
			delete(rc.entries, e.key)
		}
		rc.advance(e, false)
		return false
	}
	if e.passed && e.sent.request.Operation == configv1alpha1.InterpreterOperationAggregateStatus {
		e.about = e.sent.request.Object.Raw
		size += int64(len(e.about))
	}
	e.sent, e.cancel, e.answer, e.err = nil, nil, answer, err
	e.size = size + overhead
	if err == nil || e.backoff.Duration == 0 {
		e.backoff = pauses
	}
	if err != nil {
		e.retry = rc.opts.Clock.Now().Add(e.backoff.Step())
	}
	rc.advance(e, err == nil)
	e.place = rc.answered.PushFront(e)
	rc.bytes += e.size
	for rc.answered.Len() > rc.opts.Entries || rc.bytes > rc.opts.Bytes && rc.answered.Len() > 1 {
		rc.drop(rc.answered.Back().Value.(*entry))
	}
	return true
}

// forget drops all about hooks, and ends their calls.
func (rc *responseCache) forget(hooks []*hook) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, h := range hooks {
		h.gone, h.waiting, h.waitingBytes = true, nil, 0
	}
	rc.turn = slices.DeleteFunc(rc.turn, func(h *hook) bool { return h.gone })
	for _, e := range rc.entries {
		if e.hook.gone {
			delete(rc.courses, e.sequence)
		}
		switch {
		case !e.hook.gone:
		case e.place != nil:
			rc.drop(e)
		case e.cancel != nil:
			e.cancel()
			delete(rc.entries, e.key)
		default:
			delete(rc.entries, e.key)
		}
	}
	for _, h := range hooks {
		if h.client != nil {
			h.client.CloseIdleConnections()
		}
	}
}
