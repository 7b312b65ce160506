"""BibTeX of what benchmarks rest on."""

from __future__ import annotations

COWLEY = """@article{cowley2023compact,
  title={Compact deep neural network models of visual cortex},
  author={Cowley, Benjamin R and Stan, Patricia L and Pillow, Jonathan W and Smith, Matthew A},
  journal={bioRxiv}, year={2023}}"""
KRIEGESKORTE = """@article{kriegeskorte2008matching,
  title={Matching categorical object representations in inferior temporal cortex of man and monkey},
  author={Kriegeskorte, Nikolaus and Mur, Marieke and Ruff, Douglas A and Kiani, Roozbeh and others},
  journal={Neuron}, volume={60}, number={6}, pages={1126--1141}, year={2008}}"""
MUR = """@article{mur2013human,
  title={Human object-similarity judgments reflect and transcend the primate-IT object representation},
  author={Mur, Marieke and Meys, Mirjam and Bodurka, Jerzy and Goebel, Rainer and Bandettini, Peter A and others},
  journal={Frontiers in Psychology}, volume={4}, year={2013}}"""
GEIRHOS = """@inproceedings{geirhos2021partial,
  title={Partial success in closing the gap between human and machine vision},
  author={Geirhos, Robert and Narayanappa, Kantharaju and Mitzkus, Benjamin and Thieringer, Tizian and others},
  booktitle={Advances in Neural Information Processing Systems}, volume={34}, year={2021}}"""
MARQUES = """@article{marques2021multi,
  title={Multi-scale hierarchical neural network models that bridge from single neurons in the primate primary visual
    cortex to object recognition behavior},
  author={Marques, Tiago and Schrimpf, Martin and DiCarlo, James J},
  journal={bioRxiv}, year={2021}}"""
MAJAJ = """@article{majaj2015simple,
  title={Simple learned weighted sums of inferior temporal neuronal firing rates accurately predict human core object
    recognition performance},
  author={Majaj, Najib J and Hong, Ha and Solomon, Ethan A and DiCarlo, James J},
  journal={Journal of Neuroscience}, volume={35}, number={39}, pages={13402--13418}, year={2015}}"""
FREEMAN = """@article{freeman2013functional,
  title={A functional and perceptual signature of the second visual area in primates},
  author={Freeman, Jeremy and Ziemba, Corey M and Heeger, David J and Simoncelli, Eero P and Movshon, J Anthony},
  journal={Nature Neuroscience}, volume={16}, number={7}, pages={974--981}, year={2013}}"""
KAR = """@article{kar2019evidence,
  title={Evidence that recurrent circuits are critical to the ventral stream's execution of core object recognition
    behavior},
  author={Kar, Kohitij and Kubilius, Jonas and Schmidt, Kailyn and Issa, Elias B and DiCarlo, James J},
  journal={Nature Neuroscience}, volume={22}, number={6}, pages={974--983}, year={2019}}"""
PAPALE = """@article{papale2025extensive,
  title={An extensive dataset of spiking activity to reveal the syntax of the ventral stream},
  author={Papale, Paolo and Wang, Feng and Self, Matthew W and Roelfsema, Pieter R},
  journal={Neuron}, year={2025}}"""
COGGAN = """@article{coggan2024representations,
  title={Representations of occluded objects in human visual cortex and in neural networks},
  author={Coggan, David D and Tong, Frank},
  year={2024}}"""
BRACCI = """@article{bracci2019ventral,
  title={The ventral visual pathway represents animal appearance over animacy, unlike human behavior and deep neural
    networks},
  author={Bracci, Stefania and Ritchie, J Brendan and Kalfas, Ioannis and Op de Beeck, Hans P},
  journal={Journal of Neuroscience}, volume={39}, number={33}, pages={6513--6525}, year={2019}}"""
RAJALINGHAM = """@article{rajalingham2018large,
  title={Large-scale, high-resolution comparison of the core visual object recognition behavior of humans, monkeys, and
    state-of-the-art deep artificial neural networks},
  author={Rajalingham, Rishi and Issa, Elias B and Bashivan, Pouya and Kar, Kohitij and Schmidt, Kailyn and others},
  journal={Journal of Neuroscience}, volume={38}, number={33}, pages={7255--7269}, year={2018}}"""
HEBART = """@article{hebart2023things,
  title={THINGS-data, a multimodal collection of large-scale datasets for investigating object representations in human
    brain and behavior},
  author={Hebart, Martin N and Contier, Oliver and Teichmann, Lina and Rockter, Adam H and Zheng, Charles Y and others},
  journal={eLife}, volume={12}, year={2023}}"""
ZHANG = """@article{zhang2011object,
  title={Object decoding with attention in inferior temporal cortex},
  author={Zhang, Ying and Meyers, Ethan M and Bichot, Narcisse P and Serre, Thomas and Poggio, Tomaso A and others},
  journal={Proceedings of the National Academy of Sciences}, volume={108}, number={21},
  pages={8850--8855}, year={2011}}"""
HAXBY = """@article{haxby2001distributed,
  title={Distributed and overlapping representations of faces and objects in ventral temporal cortex},
  author={Haxby, James V and Gobbini, M Ida and Furey, Maura L and Ishai, Alumit and Schouten, Jennifer L and others},
  journal={Science}, volume={293}, number={5539}, pages={2425--2430}, year={2001}}"""
JBENCH = """@misc{jbench_sentences, title={Generated responses to sentences}, author={The jbench contributors}}"""
