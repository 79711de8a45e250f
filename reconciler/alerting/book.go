package alerting

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// book has the rules of all Alerts that ask for messages.
type book struct {
	mu    sync.RWMutex
	rules map[client.ObjectKey]alerting.Rule
	// about are the Alerts that ask for Events of a namespace.
	about map[string]map[client.ObjectKey]bool
}

func newBook() *book {
	return &book{rules: map[client.ObjectKey]alerting.Rule{}, about: map[string]map[client.ObjectKey]bool{}}
}

func (b *book) put(key client.ObjectKey, rule alerting.Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(key)
	b.rules[key] = rule
	for _, namespace := range rule.Namespaces() {
		if b.about[namespace] == nil {
			b.about[namespace] = map[client.ObjectKey]bool{}
		}
		b.about[namespace][key] = true
	}
}

func (b *book) drop(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(key)
}

func (b *book) remove(key client.ObjectKey) {
	for _, namespace := range b.rules[key].Namespaces() {
		if delete(b.about[namespace], key); len(b.about[namespace]) == 0 {
			delete(b.about, namespace)
		}
	}
	delete(b.rules, key)
}

// asks reports whether any Alert asks for Events of a namespace.
func (b *book) asks(namespace string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.about[namespace]) > 0
}

// selecting returns the Alerts that ask for an Event by its object and severity.
func (b *book) selecting(e alerting.Event) []client.ObjectKey {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []client.ObjectKey
	for key := range b.about[e.InvolvedObject.Namespace] {
		if b.rules[key].Selects(e) {
			out = append(out, key)
		}
	}
	return out
}

// rule returns the rule of an Alert.
func (b *book) rule(key client.ObjectKey) (alerting.Rule, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	rule, found := b.rules[key]
	return rule, found
}
