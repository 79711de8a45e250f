package staleremoval

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asked begins what makes a Question another one after each absence; only programs read that.
const asked = " (asked at "

// Lasting says why a copy stays: the template, such as "Deployment shop/web", is healthy in none of the clusters that it is placed in.
func Lasting(title string, in []string) string {
	return fmt.Sprintf("%s is healthy in none of the clusters that it is placed in (%s): this cluster or the control plane was away before the copy here was removed, which stays until one is",
		title, strings.Join(in, ", "))
}

// Question says why a copy stays where an agent has to ask, since a time.
func Question(since time.Time) string {
	return "the agent or the control plane was away before the copy here was removed, which stays until the control plane finds a healthy one where the template is placed" +
		asked + since.UTC().Format(metav1.RFC3339Micro) + ")"
}

// Shown returns why a Work is not removed, by its condition, as it is shown to people: a Question without its time.
func Shown(message string) string {
	if text, since, cut := strings.Cut(message, asked); cut && strings.HasSuffix(since, ")") {
		return text
	}
	return message
}
