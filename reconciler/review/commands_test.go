package review_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/sources/forge"
)

func commanding(o *gitopsv1alpha1.PullRequestReview) {
	o.Spec.Commands = []gitopsv1alpha1.ReviewCommand{gitopsv1alpha1.CommandPlan, gitopsv1alpha1.CommandExplain}
}

// says has somebody comment on pull request 1: by even numbers, somebody who may write.
func (w *world) says(id int64, text string) {
	if w.said == nil {
		w.said = map[int64][]forge.Said{}
	}
	w.said[1] = append(w.said[1], forge.Said{ID: id, Text: text, At: w.clock.Now()})
	w.pulls[0].Updated = fmt.Sprint(id)
}

// TestCommands: each command of somebody who may write is carried out once.
func TestCommands(t *testing.T) {
	w := newWorld(t, commanding)
	w.wants("a new pull request", "comment on 1", "flotilla/review 1 success: "+updated)
	w.says(2, "/flotilla plan")
	w.wants("somebody wants it looked at", "flotilla/review 1 pending: not looked at yet", "edit on 1", "flotilla/review 1 success: "+updated)
	w.wants("once")
	w.says(3, "/flotilla plan")
	w.wants("somebody who may not write")
	w.says(4, "nice\n/flotilla plan")
	w.wants("it is no command")

	w.says(6, "/flotilla explain secret/web")
	w.says(8, "/flotilla drop everything")
	if after := w.wants("two questions", "answer on 1"); after != time.Second {
		t.Errorf("comes back after %s", after)
	}
	w.wants("the other one", "answer on 1")
	w.wants("once")
	want := []string{"> `/flotilla explain secret/web`\n\n`the control plane knows no kind secret`\n", "> `/flotilla drop everything`\n\n`use /flotilla plan, /flotilla what-if CLUSTER:down, or /flotilla explain KIND/NAME -n NAMESPACE`\n"}
	if diff := cmp.Diff(want, w.answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	w.start()
	w.wants("after a restart")

	w.says(10, "/flotilla plan")
	w.clock.SetTime(w.clock.Now().Add(61 * time.Minute))
	w.wants("nobody waits for it any more")
}

// TestWhatIf: the answer is what the merge does once that happens, and each question gets one.
func TestWhatIf(t *testing.T) {
	w := newWorld(t, func(o *gitopsv1alpha1.PullRequestReview) {
		o.Spec.Commands = []gitopsv1alpha1.ReviewCommand{gitopsv1alpha1.CommandWhatIf}
	})
	w.says(2, "/flotilla what-if us-1:remove")
	w.wants("a question with the first review", "answer on 1", "comment on 1", "flotilla/review 1 success: "+updated)
	w.says(4, "/flotilla what-if eu-9:down")
	w.wants("of a cluster that there is not", "answer on 1")
	w.says(6, "/flotilla plan")
	w.wants("what is not allowed", "answer on 1")
	w.wants("once")
	if len(w.answers) != 3 {
		t.Fatalf("answers: %q", w.answers)
	}
	for i, want := range []string{"> `/flotilla what-if us-1:remove`\n\n**If us-1 is removed: ", "> `/flotilla what-if eu-9:down`\n\n`there is no cluster eu-9`\n", "> `/flotilla plan`\n\n`this command is not allowed here"} {
		if !strings.HasPrefix(w.answers[i], want) {
			t.Errorf("answer %d: %q, want %q", i, w.answers[i], want)
		}
	}
	w.says(8, "/flotilla what-if us-1:down")
	w.refs["refs/pull/1/head"] = hash("2")
	w.wants("of a head that is not there any more", "answer on 1")
	if got := w.answers[3]; got != "> `/flotilla what-if us-1:down`\n\n`the pull request has changed meanwhile: ask again`\n" {
		t.Errorf("answer: %q", got)
	}
}

// TestCommandsThatCannotBeAnsweredNow: they are tried again, and no status is kept from being told.
func TestCommandsThatCannotBeAnsweredNow(t *testing.T) {
	w := newWorld(t, commanding)
	w.says(2, "/flotilla explain configmap/web -n app")
	for _, what := range []string{"said", "writer"} {
		w.refuses = func(asked string) error {
			return map[string]error{what: errors.New("connection refused")}[asked]
		}
		w.pass()
		if phases := w.phases(); phases[0] != "1 Passed: "+updated || !strings.HasPrefix(phases[1], "Ready False Unreachable: comments of pull request 1: connection refused") {
			t.Errorf("%s: %q", what, phases)
		}
	}
	w.refuses = func(string) error { return nil }
	w.wants("the forge answers again", "answer on 1")
}

// TestTooManyCommands: others wait, and nothing else does.
func TestTooManyCommands(t *testing.T) {
	w := newWorld(t, commanding)
	for id := int64(2); id <= 200; id += 2 {
		w.says(id, "/flotilla")
	}
	answered := 0
	for range 100 {
		got, _ := w.pass()
		for _, one := range got {
			if one == "answer on 1" {
				answered++
			}
		}
	}
	if answered != 60 {
		t.Errorf("%d were answered, want 60", answered)
	}
	w.says(203, "thanks")
	w.clock.SetTime(w.clock.Now().Add(59 * time.Minute))
	w.wants("they are still of this hour")
}

// TestCommentsAreReadWhereAsked: nobody's comments are read without commands in the spec, or twice more for nothing.
func TestCommentsAreReadWhereAsked(t *testing.T) {
	w := newWorld(t, nil)
	w.says(2, "/flotilla plan")
	if w.wants("none are allowed", "comment on 1", "flotilla/review 1 success: "+updated); w.listened > 0 {
		t.Errorf("read %d times", w.listened)
	}
	w = newWorld(t, commanding)
	for range 5 {
		w.pass()
	}
	if w.listened != 2 {
		t.Errorf("read %d times, want 2", w.listened)
	}
}
