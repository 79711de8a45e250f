package whatif

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// verb is what happens to a cluster.
type verb string

// Verbs, as they are written.
const (
	isDown      verb = "down"
	isDrained   verb = "drain"
	isCordoned  verb = "cordon"
	isRemoved   verb = "remove"
	isLabelled  verb = "label"
	isTainted   verb = "taint"
	hasCapacity verb = "capacity"
	joins       verb = "add"
)

// Forms are all that an event may be written as.
const Forms = "CLUSTER:down, CLUSTER:drain, CLUSTER:cordon, CLUSTER:remove, CLUSTER:label=KEY=VALUE, CLUSTER:label=KEY-, CLUSTER:taint=KEY=VALUE:EFFECT, " +
	"CLUSTER:capacity=50%, CLUSTER:capacity=cpu=100,memory=200Gi, add:FILE"

// mostPercent is how much of its capacity a cluster may have.
const mostPercent = 1_000_000

// Verbs returns what may follow on the name of a cluster and a colon, for those who complete it: what needs a value ends with "=".
func Verbs() []string {
	return []string{string(isDown), string(isDrained), string(isCordoned), string(isRemoved), string(isLabelled) + "=", string(isTainted) + "=", string(hasCapacity) + "="}
}

// Event is something that happens to one cluster. Only Parse makes one.
type Event struct {
	text    string
	cluster string
	does    verb
	// key and value are those of a label; gone means that it is taken away.
	key, value string
	gone       bool
	taint      corev1.Taint
	// percent is how much there is of the capacity, or room what there is; one of them is set.
	percent float64
	room    corev1.ResourceList
	joining *clusterv1alpha1.Cluster
}

// String returns the event as it was written, such as "eu-3:down".
func (e Event) String() string { return e.text }

// Cluster returns the name of the cluster; empty for one that joins and whose manifest is yet to be read.
func (e Event) Cluster() string { return e.cluster }

// Loses reports whether the cluster is lost, so that it depends on ClusterTaintPolicies what becomes of what runs there.
func (e Event) Loses() bool { return e.does == isDown }

// File returns the file with the manifest of a cluster that joins; empty for all else.
func (e Event) File() string {
	if e.does != joins {
		return ""
	}
	return e.value
}

// Joining returns the event with the manifest of the cluster that joins.
func (e Event) Joining(c *clusterv1alpha1.Cluster) Event {
	e.joining, e.cluster = c, c.Name
	return e
}

// Says returns the event as a clause, such as "eu-3 is down".
func (e Event) Says() string {
	switch e.does {
	case isDown:
		return e.cluster + " is down"
	case isDrained:
		return e.cluster + " is drained"
	case isCordoned:
		return e.cluster + " is cordoned"
	case isRemoved:
		return e.cluster + " is removed"
	case isLabelled:
		if e.gone {
			return e.cluster + " loses the label " + e.key
		}
		return e.cluster + " has the label " + e.key + "=" + e.value
	case isTainted:
		return e.cluster + " has the taint " + e.taint.ToString()
	case hasCapacity:
		if e.room == nil {
			return e.cluster + " has " + e.value + " of its capacity"
		}
		return e.cluster + " has the capacity " + e.value
	default:
		return e.cluster + " joins"
	}
}

// Says returns events as one clause: "eu-3 is down and us-1 is drained".
func Says(events []Event) string {
	clauses := make([]string, len(events))
	for i, e := range events {
		clauses[i] = e.Says()
	}
	return listed(clauses)
}

// listed writes words as a sentence has them.
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Parse returns the events that words name, each of which may name several, separated by commas. Its errors name the word
// and, of one that has no form at all, the forms.
func Parse(words []string) ([]Event, error) {
	var out []Event
	for _, word := range words {
		for _, text := range split(word) {
			e, err := parse(text)
			if err != nil {
				return nil, fmt.Errorf("%q %w", text, err)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// split separates events. A part without a colon belongs to the capacity before it.
func split(word string) []string {
	var out []string
	for _, part := range strings.Split(word, ",") {
		last := len(out) - 1
		if last >= 0 && !strings.Contains(part, ":") && strings.Contains(out[last], ":"+string(hasCapacity)+"=") {
			out[last] += "," + part
			continue
		}
		out = append(out, part)
	}
	return out
}

var errForm = errors.New("is none of " + Forms)

func parse(text string) (Event, error) {
	e := Event{text: text}
	name, what, found := strings.Cut(text, ":")
	if !found || name == "" || what == "" {
		return e, errForm
	}
	if name == string(joins) {
		e.does, e.value = joins, what
		return e, nil
	}
	word, value, valued := strings.Cut(what, "=")
	e.cluster, e.does, e.value = name, verb(word), value
	switch e.does {
	case isDown, isDrained, isCordoned, isRemoved:
		if valued {
			return e, errForm
		}
		return e, nil
	case isLabelled:
		return e, e.label()
	case isTainted:
		return e, e.setTaint()
	case hasCapacity:
		return e, e.capacity()
	default:
		return e, errForm
	}
}

// label reads KEY=VALUE, or KEY-.
func (e *Event) label() error {
	text := e.value
	key, value, valued := strings.Cut(text, "=")
	if !valued {
		if key, e.gone = strings.CutSuffix(text, "-"); !e.gone {
			return errForm
		}
	}
	e.key, e.value = key, value
	return check(key, value)
}

// check errs where a key or a value could not be stored.
func check(key, value string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("has the key %q, which is none: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("has the value %q, which is none: %s", value, strings.Join(wrong, "; "))
	}
	return nil
}

// setTaint reads KEY=VALUE:EFFECT, or KEY:EFFECT.
func (e *Event) setTaint() error {
	pair, effect, hasEffect := strings.Cut(e.value, ":")
	key, value, _ := strings.Cut(pair, "=")
	if !hasEffect || key == "" {
		return errForm
	}
	e.taint = corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if e.taint.Effect != corev1.TaintEffectNoSchedule && e.taint.Effect != corev1.TaintEffectNoExecute {
		return fmt.Errorf("has the effect %q: it is NoSchedule or NoExecute", effect)
	}
	return check(key, value)
}

// capacity reads a share, or amounts.
func (e *Event) capacity() error {
	if share, is := strings.CutSuffix(e.value, "%"); is {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent >= 0 && percent <= mostPercent) {
			return fmt.Errorf("has the share %q: it is a number of percent, such as 50%%", e.value)
		}
		e.percent = percent
		return nil
	}
	e.room = corev1.ResourceList{}
	for _, part := range strings.Split(e.value, ",") {
		name, amount, found := strings.Cut(part, "=")
		if !found || name == "" {
			return errForm
		}
		q, err := resource.ParseQuantity(amount)
		if err != nil || q.Sign() < 0 {
			return fmt.Errorf("has the amount %q: it is a quantity, such as cpu=100 or memory=200Gi", part)
		}
		e.room[corev1.ResourceName(name)] = q
	}
	return nil
}
