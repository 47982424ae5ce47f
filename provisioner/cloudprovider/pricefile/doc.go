// SPDX-License-Identifier: Apache-2.0

// Package pricefile reads the operator's file of prices: what the cloud's price list cannot know, such as savings plans
// and private discounts. A rule says for which offerings it holds, in the words of a NodePool's requirements, and what
// they cost, in the words of Karpenter's NodeOverlay. It decides what an offering counts for, never what is bought.
//
// The AWS adapter asks File.Price of every offering; the program loads the file at start and watches it.
package pricefile
