// Package review decides what a pull request is told about its merge.
//
// In go how what each cluster holds would differ, rules that people wrote in CEL, and which commits and fleet that is about; out come
// the state and the line of a commit status, and the text of a comment. All of a pull request is foreign text: nothing of it can
// mention people, load images, or leave its place in the comment. The package reads and posts nothing.
package review
